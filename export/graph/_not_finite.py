"""Messages about generated values that score NaN or infinity."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def told(*values: Any) -> str:
    """The rest of a message about values that differ; "" where all of them are finite."""
    if all_finite(*values):
        return ""
    return (
        "; some are NaN or infinite, as generated rows may be outside the model's range: record"
        " requests and name them with --examples"
    )


def all_finite(*values: Any) -> bool:
    """Whether all floats are."""
    arrays = [np.asarray(value) for value in values]
    return all(np.isfinite(array).all() for array in arrays if array.dtype.kind in "fc")


def drawn_again(values: Mapping[str, str] | None) -> str:
    """A note about such scores.

    Args:
      values: of features that were drawn again, in words; None where no draw gave numbers.
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
