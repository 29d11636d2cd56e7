"""What messages say where generated values gave NaN or infinity."""

from typing import Any

import numpy as np


def told(*values: Any) -> str:
    """The rest of a message about values that differ; "" where all of them are finite."""
    arrays = [np.asarray(value) for value in values]
    if all(np.isfinite(array).all() for array in arrays if array.dtype.kind in "fc"):
        return ""
    return (
        "; some are NaN or infinite, as generated rows may be outside the model's range: record"
        " requests and name them with --examples"
    )
