"""Messages about generated values with NaN or infinite scores."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def told(*values: Any) -> str:
    """The end of a message about differing values: notes those that are not finite, else ""."""
    if all_finite(*values):
        return ""
    return (
        "; some are NaN or infinite, as generated rows may be outside the model's range: record"
        " requests and name them with --examples"
    )


def all_finite(*values: Any) -> bool:
    """Whether all floats are finite."""
    arrays = [np.asarray(value) for value in values]
    return all(np.isfinite(array).all() for array in arrays if array.dtype.kind in "fc")


def drawn_again(values: Mapping[str, str] | None) -> str:
    """A note about features whose values were drawn again because of NaN or infinite scores.

    Args:
      values: the new values by feature, in words; None if no draw gave finite scores.
    """
    if values is None:
        return (
            "some generated rows are scored NaN or infinite, and no values were found that are not:"
            " record requests and name them with --examples"
        )
    if not values:
        return ""
    drawn = ", ".join(f"{name} ({of})" for name, of in values.items())
    return f"drawn again, as other generated values are scored NaN or infinite: {drawn}"
