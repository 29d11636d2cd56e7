"""Requests by callers that a header names."""

from typing import Any

import numpy as np

HEADER = "x-colcast-caller"
FLAG = f"--caller_header={HEADER}"


def by(caller: str) -> tuple[tuple[str, str], ...]:
    """A call's metadata."""
    return ((HEADER, caller),)


def ranked(rows: int) -> dict[str, Any]:
    """Inputs of so many rows."""
    items = {"item": np.zeros(rows, np.float32), "item_name": ["x"] * rows}
    return {"user": np.float32([1]), "user_name": ["ann"], **items}
