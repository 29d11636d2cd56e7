"""Tensors that grow row by row on disk, since a source may be larger than memory."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from colcast.items._container import DTYPES, Tensor
from colcast.items._values import Lengths, Strings, Values

Array = npt.NDArray[Any]


class Spill:
    """Tensors, each in its own file in one folder."""

    def __init__(self, folder: Path) -> None:
        """Makes the folder, without tensors."""
        folder.mkdir()
        self._folder = folder
        self._tensors: dict[str, Tensor] = {}
        self._ends: dict[str, int] = {}

    def append_values(self, name: str, dtype: str, values: Values) -> None:
        """Adds the values of a column's next rows.

        Args:
            name: `column/FEATURE`.
            dtype: TensorFlow's name of the dtype.
            values: the values of these rows.
        """
        if values.lengths is not None:
            self._append_ends(f"{name}/splits", values.lengths)
        if isinstance(values.content, Strings):
            self.append_strings(name, values.content)
        else:
            self.append(name, dtype, values.content)

    def append_strings(self, name: str, strings: Strings) -> None:
        """Adds strings to the tensors `NAME/offsets` and `NAME/bytes`."""
        self._append_ends(f"{name}/offsets", strings.lengths)
        data = np.frombuffer(strings.data, np.uint8)
        self.append(f"{name}/bytes", "uint8", data)

    def append(self, name: str, dtype: str, values: Array) -> None:
        """Adds an array [values, ...] to a tensor."""
        before = self._tensors.get(name)
        rows = len(values) + (before.shape[0] if before else 0)
        path = self._folder / str(len(self._tensors)) if before is None else before.data
        assert isinstance(path, Path)
        with path.open("ab") as file:
            values.tofile(file)
        self._tensors[name] = Tensor(name, DTYPES[dtype], (rows, *values.shape[1:]), path)

    def _append_ends(self, name: str, lengths: Lengths) -> None:
        """Adds the end positions of runs with these lengths; the tensor begins with a 0."""
        if name not in self._ends:
            self._ends[name] = 0
            self.append(name, "int64", np.zeros(1, np.int64))
        ends = self._ends[name] + np.cumsum(lengths, dtype=np.int64)
        self.append(name, "int64", ends)
        if len(ends):
            self._ends[name] = int(ends[-1])

    @property
    def tensors(self) -> list[Tensor]:
        return list(self._tensors.values())

    def mapped(self, name: str) -> Array:
        """A tensor of 64-bit integers or bytes, as an array mapped from its file."""
        tensor = self._tensors[name]
        dtype = np.dtype(np.uint8 if tensor.dtype == "U8" else np.int64)
        if not tensor.size:
            return np.empty(0, dtype)
        return np.memmap(str(tensor.data), dtype, "r")
