"""The error for a malformed table, model or source."""

from collections.abc import Iterator
from contextlib import contextmanager


class ItemTableError(Exception):
    """A table, model or source is malformed; the message names the file.

    A value that does not fit raises a `colcast.client.InputError`, which names its feature and row.
    """


@contextmanager
def reading(what: object) -> Iterator[None]:
    """Turns errors that malformed content causes into an ItemTableError about `what`."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ItemTableError(f"{what}: {type(error).__name__}: {error}") from error
