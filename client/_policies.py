"""What to do with values that are not there: explicit, one choice each."""

from dataclasses import dataclass
from typing import Literal, get_args

from colcast.client._errors import InputError

NonePolicy = Literal["default", "error"]
NanPolicy = Literal["send", "default", "error"]
UnusedPolicy = Literal["suggest", "drop", "error"]
Dedupe = Literal["auto", "off"]


@dataclass(frozen=True, slots=True)
class Policies:
    """How inputs with gaps or extras are treated.

    Attributes:
        none: None (also pandas' NA, NaT) in place of a value. "default": the model's default,
            an empty list for a multi-valued feature, an error for a feature without default.
            "error": always an error.
        nan: NaN in a float feature. "send": it is a value like any other. "default": as None.
            "error": an error. (NaN where no float belongs, as pandas leaves behind for a missing
            integer, string, list or vector, always counts as None.)
        unused: a column the signature does not use. "suggest": dropped, named once in the log,
            but an error if its name looks like a misspelling of a feature that is absent.
            "drop": dropped. "error": an error.
    """

    none: NonePolicy = "default"
    nan: NanPolicy = "send"
    unused: UnusedPolicy = "suggest"

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("none", self.none, get_args(NonePolicy)),
            ("nan", self.nan, get_args(NanPolicy)),
            ("unused", self.unused, get_args(UnusedPolicy)),
        ):
            if value not in allowed:
                raise InputError(f"policy {name}={value!r} is none of {', '.join(allowed)}")
