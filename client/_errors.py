"""The errors that this package raises."""

from typing import Any


class ColcastError(Exception):
    """Base class of this package's errors. All can be copied and pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, self.__dict__)


class InputError(ColcastError, ValueError):
    """The caller's data does not fit the model's signature; nothing was sent.

    Attributes:
        feature: the feature at fault, or None if the mistake concerns no single feature.
        row: the 0-based candidate at fault, or None (user features, whole columns).
    """

    def __init__(
        self,
        message: str,
        *,
        feature: str | None = None,
        row: int | None = None,
        of_user: bool = False,
    ) -> None:
        self._message, self._of_user = message, of_user
        where = "" if feature is None else f"{'user ' if of_user else ''}feature {feature!r}"
        where += "" if row is None else f", row {row}" if where else f"row {row}"
        super().__init__(f"{where}: {message}" if where else message)
        self.feature = feature
        self.row = row

    def below(self, rows: int) -> "InputError":
        """The same error with `rows` added to the row number."""
        if self.row is None:
            return self
        return InputError(
            self._message, feature=self.feature, row=self.row + rows, of_user=self._of_user
        )


class SchemaError(ColcastError):
    """The served model has no signature that the request could use."""


class DecodeError(ColcastError):
    """The server's answer is not a valid message."""


class UnknownDtypeError(DecodeError):
    """A tensor of a dtype that this client cannot send or read (a resource, a variant)."""


class ServerError(ColcastError):
    """The server refused or did not answer.

    Attributes:
        code: the name of the gRPC status, such as "INVALID_ARGUMENT" or "DEADLINE_EXCEEDED".
        details: the server's message.
        attempts: how often the request was sent; more than 1 if the client retried it.
        server: the address of the server that refused; empty if unknown.
    """

    def __init__(
        self, code: str, details: str, *, address: str, attempts: int = 1, server: str = ""
    ) -> None:
        tries = "" if attempts == 1 else f" after {attempts} attempts"
        super().__init__(f"{code} from {address}{tries}: {details}")
        self.code = code
        self.details = details
        self.attempts = attempts
        self.server = server


def _restored(kind: type[ColcastError], args: tuple[Any, ...], state: dict[str, Any]) -> Any:
    """Unpickles an error without calling its constructor, which would add to the message again."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error
