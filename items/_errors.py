"""The error for a malformed table, model or source."""


class ItemTableError(Exception):
    """A table, model or source is malformed; the message names the file.

    A value that does not fit raises a `colcast.client.InputError`, which names its feature and row.
    """
