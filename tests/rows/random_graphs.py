"""Random programs over columns: each runs on any rows, and builds the same graph.

A program is a list of Python expressions of earlier tensors, drawn from `vocabulary`. An expression
becomes a step if it runs on the program's example rows, so nearly every step also runs on others.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export.convert._features import Feature, Kind
from colcast.export.convert._parse_op import parsed_tensors
from tensorflow.python.eager.context import eager_mode

from .vocabulary import TABLES

v1 = tf.compat.v1
Env = dict[str, Any]
Row = dict[str, Any]

LISTS = {  # list features: kind and dtype; `paired` is always as long as `ids`
    "ids": (Kind.VAR_LEN, "int64"),
    "paired": (Kind.VAR_LEN, "float32"),
    "tags": (Kind.VAR_LEN, "string"),
    "clicks": (Kind.RAGGED, "int64"),
    "prices": (Kind.RAGGED, "float32"),
    "steps": (Kind.FIXED_LEN_SEQUENCE, "float32"),
}
OWN = [name for name in LISTS if name != "paired"]  # lists whose lengths are drawn
PLAIN = {  # other columns
    "x": ("float32", [4]),
    "y": ("float32", [4]),
    "z": ("float32", [3, 2]),
    "f": ("float32", []),
    "i": ("int64", []),
    "j": ("int32", [3]),
    "s": ("string", []),
}
USER = {"u": ("float32", [4]), "v": ("float32", [])}  # of one user, with one row in every run
SEEN = Feature("seen", Kind.VAR_LEN, "int64")  # a list of the user
FEATURES = {name: Feature(name, kind, dtype) for name, (kind, dtype) in LISTS.items()}
FEATURES |= {"seen": SEEN}
LONGEST = 4
WORDS = np.array([b"red", b"12", b"", b"a b c", b"aa", "größe".encode()], object)
_HOSTILE = np.float32(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 1e19, -1e19, 3e38, 1e-30, 0.5]
)
_NUMBERS = ["1", "2", "3", "4", "R", "tf.shape(<t>)[0]", "tf.shape(<T>)[1]", "tf.shape(<t>)[-1]"]
_NUMBERS += ["tf.size(<t>)", "tf.rank(<t>)", "<m>", "tf.cast(tf.reduce_sum(<f>), tf.int32)"]
_INDICES = ["(tf.abs(<i>) % {2|3|4})", "(tf.cast(<i>, tf.int32) % {2|3})", "(tf.abs(<I>) % 3)"]
_INDICES += ["(tf.range(tf.shape(<t>)[0]) % 3)", "tf.range(<n>)", "tf.argmax(<F>, -1)"]
_MOST_VALUES, _MOST_RANK, _TRIES = 30000, 5, 40


_ANY, _MATRIX, _VECTOR = range(9), range(2, 9), (1,)
_KINDS = {  # kind of operand: its dtype's family, and its ranks
    "f": ("f", _ANY),
    "F": ("f", _MATRIX),
    "V": ("f", _VECTOR),
    "2": ("f", (2,)),
    "3": ("f", (3,)),
    "i": ("i", _ANY),
    "I": ("i", _MATRIX),
    "J": ("i", _VECTOR),
    "b": ("b", _ANY),
    "s": ("s", _ANY),
    "S": ("s", _VECTOR),
    "t": ("", _ANY),
    "T": ("", _MATRIX),
}


@dataclass(frozen=True)
class Weight:
    """A weight or a constant: its shape, and whether it is an integer or may be drawn anew."""

    shape: tuple[int, ...]
    whole: bool = False
    constant: bool = False

    def draw(self, draw: np.random.Generator, hostile: bool = False) -> Any:
        if self.whole:
            return np.int32(draw.integers(1, 4, self.shape))
        value = np.float32(draw.normal(size=self.shape))
        return spoiled(value, draw) if hostile and draw.random() < 0.2 else value


@dataclass
class Slot:
    """A tensor of a program: its expression, and in the graph.

    Attributes:
        age: the step that made it.
        kinds: the kinds of operands that it may be.
        weight: how often it is drawn.
    """

    text: str
    graph: Any
    age: int
    kinds: frozenset[str]
    weight: int


def _kinds(value: Any) -> frozenset[str]:
    if isinstance(value, tf.SparseTensor):
        return frozenset(["sp", "si"] if value.dtype.is_integer else ["sp"])
    if isinstance(value, tf.RaggedTensor):
        return frozenset(["r"])
    if not isinstance(value, tf.Tensor):
        return frozenset()
    rank, family = value.shape.rank, ("", _family(value.dtype))
    return frozenset(k for k, (of, ranks) in _KINDS.items() if of in family and rank in ranks)


def _family(dtype: tf.DType) -> str:
    if dtype.is_integer:
        return "i"
    return {tf.float32: "f", tf.bool: "b", tf.string: "s"}.get(dtype, "")


@dataclass
class Program:
    """Steps, their weights, and the tensors that they make.

    Attributes:
        steps: names and expressions, in order.
        weights: by name.
        values: the weights' values, by name.
        variables: those that are no constants, in the graph.
        slots: the tensors of the columns and of the steps.
        refused: how many expressions did not run on the example rows, or have no graph.
    """

    steps: list[tuple[str, str]] = field(default_factory=list)
    weights: dict[str, Weight] = field(default_factory=dict)
    values: Env = field(default_factory=dict)
    variables: Env = field(default_factory=dict)
    slots: list[Slot] = field(default_factory=list)
    refused: int = 0

    def made(self) -> list[Slot]:
        """The dense tensors of the steps; a step may return a column as it is."""
        dense = [slot for slot in self.slots if slot.age and isinstance(slot.graph, tf.Tensor)]
        return [slot for slot in dense if slot.graph.op.type != "Placeholder"]

    def redrawn(self, draw: np.random.Generator) -> Env:
        """The weights of another training."""
        return {
            name: self.values[name] if weight.constant else weight.draw(draw, hostile=True)
            for name, weight in self.weights.items()
        }

    def source(self, wanted: str) -> str:
        """The steps from which a tensor is computed, as Python."""
        lines, needed = [], set(re.findall(r"\w+", wanted))
        for name, text in reversed(self.steps):
            if name in needed:
                needed |= set(re.findall(r"\w+", text))
                lines.append(f"{name} = {text}")
        weights = [f"{n} = {w}" for n, w in self.weights.items() if n in needed]
        return "\n".join([*weights, *reversed(lines)])


class Generator:
    """Draws a program and builds its graph in the default graph."""

    def __init__(self, seed: int, examples: Env, graph_env: Env) -> None:
        """Starts from tensors of the graph, and from examples of them."""
        self._draw = random.Random(seed)
        self._numbers = np.random.default_rng(seed)
        self._env: Env = {"tf": tf, **examples}
        self._graph_env = {"tf": tf, **graph_env}
        self._prefix = f"p{seed}_"
        self._last: Slot | None = None
        self._constants = 0.2  # the share of weights that are the same in every training
        self.program = Program()
        for name, value in examples.items():
            if name != "R":
                self._add(name, value, graph_env[name])

    def grow(self, steps: int) -> Program:
        tables = [table for table, times in TABLES for _ in range(times)]
        for _ in range(steps * _TRIES):
            if len(self.program.steps) == steps:
                break
            self._last = None
            before = set(self.program.weights)
            if not self._step(self._draw.choice(self._draw.choice(tables))):
                self.program.refused += 1
                for name in set(self.program.weights) - before:
                    del self.program.weights[name]
                    self.program.variables.pop(name, None)
        return self.program

    def given(self, steps: str | Callable[[Env], Any]) -> Program:
        """A program that is written out but for weights: expressions or a function."""
        self._constants = 0.0
        for step in steps.split("; ") if isinstance(steps, str) else [steps]:
            name = f"t{len(self.program.steps)}"
            text = step.__name__ if callable(step) else self._filled(step)
            with tf.name_scope(self._prefix + name):
                made = step(self._graph_env) if callable(step) else eval(text, self._graph_env)
            self._graph_env[name] = made
            self.program.steps.append((name, text))
        self._add(name, None, tf.identity(made))
        return self.program

    def _step(self, template: str) -> bool:
        """Adds a step unless the expression does not run on the example rows."""
        name = f"t{len(self.program.steps)}"
        try:
            text = self._filled(template)
            code = compile(text, text, "eval")
            with eager_mode():
                value = eval(code, self._env)
                if not all(map(self._wanted, _parts(value))):
                    return False
            with tf.name_scope(self._prefix + name):
                made = eval(code, self._graph_env)
        except Exception:
            return False
        if len(_parts(value)) != len(_parts(made)):
            return False
        self._env[name], self._graph_env[name] = value, made
        self.program.steps.append((name, text))
        if isinstance(value, tuple | list):
            for n, (one, graph) in enumerate(zip(value, made, strict=True)):
                self._add(f"{name}[{n}]", one, graph)
        else:
            self._add(name, value, made)
        return True

    def _wanted(self, value: Any) -> bool:
        if isinstance(value, tf.SparseTensor):
            return bool(tf.size(value.values) > 0) and len(value.dense_shape) <= _MOST_RANK
        if isinstance(value, tf.RaggedTensor):
            return bool(tf.size(value.flat_values) > 0)
        if not isinstance(value, tf.Tensor):
            raise TypeError(value)
        size = tf.size(value)
        return (
            bool(size > 0 or self._draw.random() < 0.02)
            and size <= _MOST_VALUES
            and (value.shape.rank <= _MOST_RANK)
        )

    def _add(self, text: str, value: Any, graph: Any) -> None:
        one_each = getattr(value, "shape", [0])[:1] == [len(self._env.get("x", ()))]
        slot = Slot(text, graph, len(self.program.steps), _kinds(value), 3 if one_each else 1)
        self.program.slots.append(slot)

    def _filled(self, template: str) -> str:
        while found := re.search(r"\{([^{}]*)\}", template):
            chosen = self._draw.choice(found[1].split("|"))
            template = template[: found.start()] + chosen + template[found.end() :]
        made, at = "", 0
        for found in re.finditer(r"<([\w=]+(?::[-\d,]*)?)>", template):
            made += template[at : found.start()] + self._operand(found[1])
            at = found.end()
        return made + template[at:]

    def _operand(self, kind: str) -> str:
        if kind == "=":
            if not self._last:
                raise ValueError(kind)
            return self._last.text
        if kind in ("n", "ix"):
            last = self._last
            text = self._filled(self._draw.choice(_NUMBERS if kind == "n" else _INDICES))
            self._last = last or self._last
            return text
        if kind == "ax":
            return self._draw.choice(["-1", "-1", "1", "1", "0", "2", "-2"])
        if kind == "c":
            return str(self._draw.choice([0, 1, 2, 3, -1]))
        if kind in ("m", "k"):
            return self._weight((), whole=kind == "m")
        if kind.startswith("w:"):
            return self._weight(tuple(self._width(int(n)) for n in kind[2:].split(",")))
        slots = [slot for slot in self.program.slots if kind in slot.kinds]
        now = len(self.program.steps)
        odds = [slot.weight * (0.8 ** (now - slot.age) + 0.03) for slot in slots]
        self._last = self._draw.choices(slots, odds)[0]
        return self._last.text

    def _width(self, n: int) -> int:
        if n > 0:
            return n
        width = self._last and self._last.graph.shape[n]
        if not width:
            raise ValueError(n)
        return int(width)

    def _weight(self, shape: tuple[int, ...], whole: bool = False) -> str:
        name = f"w{len(self.program.weights)}"
        weight = Weight(shape, whole, constant=self._draw.random() < self._constants)
        value = weight.draw(self._numbers)
        self.program.weights[name], self.program.values[name] = weight, value
        with eager_mode():
            self._env[name] = tf.constant(value)
        if weight.constant:
            self._graph_env[name] = tf.constant(value, name=self._prefix + name)
        else:
            self.program.variables[name] = v1.Variable(
                value, name=self._prefix + name, use_resource=True
            )
            self._graph_env[name] = self.program.variables[name]
        return name


def _parts(value: Any) -> Sequence[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


def in_graph(columns: Env) -> Env:
    """The tensors that programs start from, as the converter makes them from columns."""
    made: Env = {name: columns[name] for name in PLAIN | USER}
    made |= {"b": made["i"] > 1, "R": tf.shape(made["x"])[0], "columns": columns}
    for name, feature in FEATURES.items():
        parsed = parsed_tensors(feature, columns)
        if feature.kind is Kind.VAR_LEN:
            made[name] = tf.SparseTensor(*parsed)
        elif feature.kind is Kind.RAGGED:
            made[name] = tf.RaggedTensor.from_row_splits(*parsed, validate=False)
        else:
            (made[name],) = parsed
    return made


def computed(tensors: Env, columns: Env, session: v1.Session) -> Env:
    """The same tensors, computed from columns and eager."""
    names = {name: tensor for name, tensor in tensors.items() if name != "columns"}
    flat = tf.nest.flatten(names, expand_composites=True)
    fed = {tensor: columns[name] for name, tensor in tensors["columns"].items()}
    values = zip(session.run(flat, fed), flat, strict=True)
    with eager_mode():
        made = [tf.constant(value, tensor.dtype) for value, tensor in values]
        return tf.nest.pack_sequence_as(names, made, expand_composites=True)  # type: ignore[no-any-return]


def placeholders() -> Env:
    """The columns in the default graph."""
    shapes = {name: (dtype, [None, *inner]) for name, (dtype, inner) in PLAIN.items()}
    shapes |= {name: (dtype, [1, *inner]) for name, (dtype, inner) in USER.items()}
    for feature in FEATURES.values():
        for column in feature.columns:
            rows = 1 if feature is SEEN else None
            shapes[column.name] = (column.dtype, [rows, *column.shape[1:]])
    return {
        name: v1.placeholder(dtype, shape, name=name.replace("/", "_"))
        for name, (dtype, shape) in shapes.items()
    }


def of_user(name: str) -> bool:
    return name in USER or name.startswith("seen")


def draw_user(draw: np.random.Generator, hostile: bool, rows: int) -> Env:
    """The user's columns; the list has as many entries as there are rows, unless hostile."""
    made = {
        name: _values(dtype, [1, *shape], draw, hostile) for name, (dtype, shape) in USER.items()
    }
    length = int(draw.choice([rows, 3, 1, 0])) if hostile else rows
    seen = draw.integers(0, 6, (1, length))
    return {**made, "seen": seen, "seen/length": np.array([length])}


def draw_row(draw: np.random.Generator, hostile: bool, lengths: Mapping[str, int]) -> Row:
    """A row; `lengths` gives the lengths of lists, others are drawn."""
    row: Row = {
        name: _values(dtype, inner, draw, hostile) for name, (dtype, inner) in PLAIN.items()
    }
    for name, (_, dtype) in LISTS.items():
        like = "ids" if name == "paired" else name
        length = len(row["ids"]) if name == "paired" else lengths.get(like)
        if length is None:
            length = int(draw.integers(0, LONGEST + 1))
        row[name] = _values(dtype, [length], draw, hostile)
    return row


def _values(dtype: str, shape: Sequence[int], draw: np.random.Generator, hostile: bool) -> Any:
    if dtype == "string":
        return np.asarray(WORDS[draw.integers(0, len(WORDS), shape)], object)
    if dtype.startswith("int"):
        return np.asarray(draw.integers(0, 6, shape), dtype)
    value = np.asarray(draw.integers(-16, 17, shape) / 4, np.float32)
    return spoiled(value, draw) if hostile else value


def spoiled(value: Any, draw: np.random.Generator) -> Any:
    """The value with some entries that are hostile."""
    bad = _HOSTILE[draw.integers(0, len(_HOSTILE), value.shape)]
    return np.where(draw.random(value.shape) < 0.2, bad, value).astype(np.float32)


def columns_of(rows: Sequence[Row]) -> Env:
    """The columns of rows: lists padded to the longest, with their lengths."""
    made = {name: np.stack([row[name] for row in rows]) for name in PLAIN}
    for name in LISTS:
        feature = FEATURES[name]
        width = max(len(row[name]) for row in rows)
        empty = b"" if feature.dtype == "string" else 0
        padded = np.full((len(rows), width), empty, object if empty == b"" else feature.dtype)
        for n, row in enumerate(rows):
            padded[n, : len(row[name])] = row[name]
        made[name] = padded
        if feature.length_column:
            made[feature.length_column] = np.array([len(row[name]) for row in rows], np.int64)
    return made
