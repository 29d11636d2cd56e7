"""The answer: outputs by name, and the candidates in order."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from colcast.client._errors import InputError
from colcast.client.columns._dtypes import Array

_COLUMN = re.compile(r"(.+)\[:, ?(-?\d+)\]")
_USUAL_NAMES = ("scores", "score", "predictions", "logistic", "probabilities", "output_0")


class Ranked(NamedTuple):
    """A ranked candidate: its row in the request and its score."""

    row: int
    score: float


@dataclass(frozen=True)
class Ranking:
    """The model's answer for N candidates.

    Attributes:
        outputs: output name -> array [N, ...], with row i for candidate i.
        model_version: the version that answered; None if the server did not say.
        metadata: the server's response metadata (initial and trailing).
        score_output: the output to rank by, if the caller named one, such as "scores" or
            "probabilities[:, 1]".
        keys: the ranked keys by name, [N] each; empty unless items were given by key.
    """

    outputs: dict[str, Array]
    model_version: int | None = None
    metadata: Mapping[str, str | bytes] = field(default_factory=dict)
    score_output: str | None = None
    keys: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @cached_property
    def _named(self) -> tuple[str | None, int | None]:
        """The output and the column that the caller named."""
        name = self.score_output
        found = name is not None and name not in self.outputs and _COLUMN.fullmatch(name)
        return (found[1], int(found[2])) if found else (name, None)

    @cached_property
    def _score_name(self) -> str:
        named, column = self._named
        if named is not None and named not in self.outputs:
            raise InputError(f"no output {named!r}; the outputs are {self._shapes()}")
        possible = [named] if named else sorted(self.outputs)
        fitting = [name for name in possible if _one_float_a_row(self.outputs[name], column)]
        if not fitting:
            found = f"{named!r} is not" if named else "no output is"
            what = "one float per row" if column is None else f"floats with a column {column}"
            several = any(self.outputs[name].ndim == 2 for name in possible)
            one = (
                '; score_output="NAME[:, 1]" ranks by a column'
                if several and column is None
                else ""
            )
            raise InputError(f"{found} {what}, to rank by: {self._shapes()}{one}")
        if len(fitting) == 1:
            return fitting[0]
        for usual in _USUAL_NAMES:
            if usual in fitting:
                return usual
        raise InputError(
            f"which of {', '.join(fitting)} is the score? Name it with score_output;"
            f" the outputs are {self._shapes()}"
        )

    @cached_property
    def scores(self) -> Array:
        """One score per candidate, [N].

        They are the output or column that the caller named, otherwise the only floating-point
        output with one value per row, or among several such outputs the one with a usual name
        (scores, score, predictions, logistic, ...).

        Raises:
            InputError: the named output does not exist or has several values per row, or it is
                unclear which of several outputs is the score.
        """
        values, column = self.outputs[self._score_name], self._named[1]
        return values.reshape(-1) if column is None else values[:, column]

    def _other_outputs(self) -> dict[str, Array]:
        """Outputs besides the score with one value per candidate, each [N]."""
        rows = len(self.scores)
        return {
            name: values.reshape(-1)
            for name, values in self.outputs.items()
            if name != self._score_name and values.ndim and values.size == len(values) == rows
        }

    @cached_property
    def order(self) -> Array:
        """The candidates' rows, best score first, int64 [N]; ties keep the order of the request."""
        return np.argsort(-self.scores.astype(np.float64), kind="stable")

    def top(self, k: int) -> list[Ranked]:
        """The k best candidates (all, if there are fewer), best first."""
        return [Ranked(int(row), float(self.scores[row])) for row in self.order[:k]]

    def top_keys(self, k: int) -> list[Any]:
        """The keys of the k best candidates, best first.

        Raises:
            InputError: the candidates were not given by one key.
        """
        if len(self.keys) != 1:
            names = ", ".join(self.keys) or "none"
            raise InputError(f"which keys? The candidates have {names}; expected one")
        (keys,) = self.keys.values()
        return [keys[row] for row in self.order[:k]]

    def to_pandas(self, items: Any = None) -> Any:
        """A DataFrame of the candidates, best first.

        Args:
            items: the DataFrame that was ranked, whose columns are added; or the list of dicts, or
                the dict of lists or arrays.

        Returns:
            The columns `score` and the other outputs with one value per candidate, by their names;
            without `items` also the keys, if there are any. The index is that of `items`, or the
            candidates' rows. If `items` has a column of the same name, the output's column is named
            `NAME_output`.

        Raises:
            InputError: as for `scores`, or if `items` has another number of rows.
            ModuleNotFoundError: pandas is not installed.
        """
        import pandas as pd

        columns = {"score": self.scores, **self._other_outputs()}
        if items is None:
            return pd.DataFrame({**self.keys, **columns}).iloc[self.order].rename_axis("row")
        if not isinstance(items, pd.DataFrame):
            items = items.to_pandas() if hasattr(items, "to_pandas") else _frame(pd, items)
        if len(items) != len(self.scores):
            raise InputError(f"items has {len(items)} rows, {len(self.scores)} were ranked")
        taken = {n: f"{n}_output" if n in items.columns else n for n in columns}
        ours = pd.DataFrame({taken[n]: v for n, v in columns.items()}, index=items.index)
        return pd.concat([items, ours], axis=1).iloc[self.order]

    def split(self, rows: Sequence[int]) -> "list[Ranking]":
        """One ranking per count in `rows`; each gets outputs without rows unchanged."""
        ends = np.cumsum(rows).tolist()
        total = ends[-1]
        return [
            replace(
                self,
                outputs={
                    name: values[end - count : end]
                    if values.ndim and len(values) == total
                    else values
                    for name, values in self.outputs.items()
                },
            )
            for count, end in zip(rows, ends, strict=True)
        ]

    def _shapes(self) -> str:
        shapes = [f"{name} {a.dtype}{list(a.shape)}" for name, a in sorted(self.outputs.items())]
        return ", ".join(shapes)


def _frame(pd: Any, items: Any) -> Any:
    """Candidates as a DataFrame; an array's further dimensions become lists."""
    if isinstance(items, Mapping):
        items = {n: list(v) if np.ndim(v) > 1 else v for n, v in items.items()}
    try:
        return pd.DataFrame(items)
    except (TypeError, ValueError) as error:
        raise InputError(f"items are not the ones that were ranked: {error}") from None


def _one_float_a_row(values: Array, column: int | None) -> bool:
    if values.dtype.kind != "f" or values.ndim < 1:
        return False
    if column is not None:
        return values.ndim == 2 and column in range(-values.shape[1], values.shape[1])
    return bool(values.size == values.shape[0])
