"""Records of exports without their models; builders read only the records."""

from pathlib import Path
from typing import Any

from colcast.zoo.saving import with_record


def declared(
    kind: str = "fixed_len",
    dtype: str = "int64",
    shape: tuple[int, ...] = (),
    default: Any = None,
    side: str = "item",
) -> dict[str, Any]:
    """A feature as colcast.json describes it."""
    return {"kind": kind, "dtype": dtype, "shape": list(shape), "default": default, "side": side}


def model(folder: Path, **features: dict[str, Any]) -> Path:
    """Writes a record of one signature; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with_record(folder, {"columnar": {"features": features}})
    return folder


MOVIES = {
    "user_age": declared(side="user"),
    "year": declared(dtype="float32", default=[1990.0]),
    "title": declared(dtype="string"),
    "genres": declared("var_len", "string"),
    "vector": declared(dtype="float32", shape=(2,)),
}
