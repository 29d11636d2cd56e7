"""Checks the rule on random graphs: `python -m tests.rows.fuzz --graphs 1000`.

Every tensor that the rule calls independent is computed for some rows together, for each alone, in
another order, repeated, and beside rows with longer lists; with NaN, infinities and empty lists;
and with other weights. Lists that the rule names are equally long in all runs that are compared.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export.graph._nodes import FlatGraph
from colcast.export.rows import Walk, verdict
from colcast.export.rows._independence import rows_of
from tensorflow.core.protobuf.config_pb2 import CallableOptions

from .random_graphs import (
    LONGEST,
    OWN,
    Env,
    Generator,
    Program,
    Row,
    Slot,
    columns_of,
    draw_row,
    draw_user,
    in_graph,
    of_user,
    placeholders,
)

v1 = tf.compat.v1
_TOGETHER = 10  # programs that share a graph, which costs more than its tensors
_NORMAL = 5
_TOLERANCE = 2e-4
_CONFIG = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
_CONFIG.graph_options.rewrite_options.disable_meta_optimizer = True
_CONFIG.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0


@dataclass
class Tally:
    """What the fuzzer has done.

    Attributes:
        unsound: a report of each tensor whose rows are not independent.
        failed: messages of runs that failed although others of the same rows did not.
        unstable: tensors that change as much with tiny changes of their inputs.
    """

    graphs: int = 0
    steps: int = 0
    refused: int = 0
    tensors: int = 0
    independent: int = 0
    compared: int = 0
    without_run: int = 0
    unstable: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    unsound: list[str] = field(default_factory=list)
    why: Counter[str] = field(default_factory=Counter)

    def line(self) -> str:
        return (
            f"{self.graphs} graphs of {self.steps} ops ({self.refused} refused by TensorFlow),"
            f" {self.tensors} tensors, {self.independent} called independent"
            f" ({self.without_run} never ran), {self.compared} comparisons,"
            f" {self.unstable} unstable, {len(self.unsound)} UNSOUND,"
        )


@dataclass
class Rows:
    """Rows of one draw.

    Attributes:
        user: the columns of their user.
        normal: rows with lists of any length; those of the first are empty.
        carriers: for each list, a row that has its longest, and no other list.
        longer: for each list, a row that has a longer one.
    """

    user: Env
    normal: list[Row]
    carriers: dict[str, Row]
    longer: dict[str, Row]

    @classmethod
    def drawn(cls, draw: np.random.Generator, hostile: bool) -> "Rows":
        def only(name: str, length: int) -> Row:
            return draw_row(draw, hostile, {each: length * (each == name) for each in OWN})

        normal = [draw_row(draw, hostile, dict.fromkeys(OWN, 0))]
        normal += [draw_row(draw, hostile, {}) for _ in range(_NORMAL - 1)]
        return cls(
            draw_user(draw, hostile, _NORMAL + len(OWN)),
            normal,
            {name: only(name, LONGEST) for name in OWN},
            {name: only(name, LONGEST + 3) for name in OWN},
        )

    def columns(self, rows: Sequence[Row]) -> Env:
        return columns_of(rows) | self.user

    def whole(self) -> list[Row]:
        return [*self.normal, *self.carriers.values()]

    def batches(self, own: frozenset[str], draw: np.random.Generator) -> Iterator[list[Row]]:
        """Some of the rows; the lists in `own` are as long as in `whole`."""
        with_own = [self.carriers[name] for name in sorted(own)]
        one, other = self.normal[1:3] if draw.random() < 0.5 else self.normal[3:]
        yield from ([*with_own, *rows] for rows in (self.normal[:1], [one], [other, one]))
        beside = [row for name, row in self.longer.items() if name not in own][draw.integers(2) :]
        shuffled = [*self.normal, *with_own, self.normal[int(draw.integers(_NORMAL))], *beside]
        yield [shuffled[n] for n in draw.permutation(len(shuffled))]


def fuzz(seeds: Sequence[int], tally: Tally, given: Sequence[Sequence[str]] = ()) -> None:
    """Checks one program for each seed, a random one or of `given` steps; they share a graph."""
    drawn = Rows.drawn(np.random.default_rng(seeds[0]), hostile=False)
    example = drawn.columns(drawn.whole())
    programs = []
    with tf.Graph().as_default() as graph:
        columns = placeholders()
        tensors = in_graph(columns)
        for number, seed in enumerate(seeds):
            generator = Generator(seed, example, tensors)
            steps = int(np.random.default_rng(seed).integers(5, 26))
            programs.append(generator.given(given[number]) if given else generator.grow(steps))
        slots = [
            slot
            for program in programs
            for slot in program.slots
            if slot.age and isinstance(slot.graph, tf.Tensor)
        ]
        session = v1.Session(graph=graph, config=_CONFIG)
        found = _verdicts(session, columns, [slot.graph.name for slot in slots])
    for seed, program in zip(seeds, programs, strict=True):
        tally.graphs += 1
        tally.steps += len(program.steps)
        tally.refused += program.refused
        mine = {s.text: s for s in program.slots if s.age and isinstance(s.graph, tf.Tensor)}
        tally.tensors += len(mine)
        verdicts = {text: found[slot.graph.name] for text, slot in mine.items()}
        tally.why.update(str(why)[:60] for rows, why in verdicts.values() if not rows)
        own = {
            text: frozenset("ids" if name == "paired" else name for name in names) - {"seen"}
            for text, (rows, names) in verdicts.items()
            if rows
        }
        tally.independent += len(own)
        if own:
            runner = Runner(program, session, columns, [mine[text] for text in own])
            _check(seed, program, runner, own, tally)


def _verdicts(
    session: v1.Session, columns: Env, wanted: Sequence[str]
) -> dict[str, tuple[bool, Any]]:
    """The rule's verdict on each tensor."""
    graph = FlatGraph(v1.train.export_meta_graph(graph=session.graph), wanted)
    names = {name: tensor.name for name, tensor in columns.items()}
    user = {name: tensor for name, tensor in names.items() if of_user(name)}
    items = {name: tensor for name, tensor in names.items() if not of_user(name)}
    given = {**rows_of(items, session.graph), **rows_of(user, session.graph, rows=())}
    facts = Walk(graph, session, given).facts
    return {tensor: verdict(facts[tensor]) for tensor in wanted}


class Runner:
    """Computes a program's tensors: with a session, or step by step where a step fails."""

    def __init__(
        self, program: Program, session: v1.Session, columns: Env, wanted: Sequence[Slot]
    ) -> None:
        self._program, self._session, self._columns = program, session, list(columns)
        self._wanted = [slot.text for slot in wanted]
        self._call = _callable(session, columns.values(), [slot.graph for slot in wanted])
        variables = program.variables.values()
        fed = [variable.initializer.inputs[1] for variable in variables]
        assigns = [variable.initializer.name for variable in variables]
        self._assign = _callable(session, fed, [], assigns) if assigns else None
        self._weights: Env | None = None

    def run(self, columns: Env, weights: Env) -> Env:
        """The tensors, or errors, by expression."""
        if self._assign and weights is not self._weights:
            self._weights = weights
            self._assign(*(weights[name] for name in self._program.variables))
        try:
            values = self._call(*(columns[name] for name in self._columns))
            return dict(zip(self._wanted, values, strict=True))
        except tf.errors.OpError:
            env = self._program.run(columns, weights)
            return {text: _value(text, env) for text in self._wanted}


def _callable(
    session: v1.Session, fed: Iterable[Any], fetched: Iterable[Any], targets: Sequence[str] = ()
) -> Callable[..., Any]:
    """As Session.make_callable, which takes milliseconds more for each call."""
    options = CallableOptions(target=targets)
    options.feed.extend(tensor.name for tensor in fed)
    options.fetch.extend(tensor.name for tensor in fetched)
    return session._make_callable_from_options(options)  # type: ignore[no-any-return]


def _check(
    seed: int, program: Program, runner: Runner, own: Mapping[str, frozenset[str]], tally: Tally
) -> None:
    """Compares the rows of a program's independent tensors."""
    compared, wrong = set(), {}
    for number in range(3):
        draw = np.random.default_rng([seed, number])
        rows = Rows.drawn(draw, hostile=number > 0)
        weights = program.redrawn(draw) if number > 1 else program.values
        whole = rows.whole()
        together = runner.run(rows.columns(whole), weights)
        for names in sorted(set(own.values()), key=sorted):
            for batch in rows.batches(names, draw):
                apart = runner.run(rows.columns(batch), weights)
                for text in (text for text, each in own.items() if each == names):
                    said = _compared(text, whole, together, batch, apart, tally)
                    compared |= {text} if said is not None else set()
                    if not said or text in wrong:
                        continue
                    if _unstable(runner, text, rows, together, weights, draw):
                        tally.unstable += 1
                    else:
                        wrong[text] = f"draw {number}, batch of {len(batch)}: {said}"
    tally.without_run += len(own.keys() - compared)
    for text in sorted(wrong, key=list(own).index)[:1]:
        tally.unsound.append(
            f"seed {seed}, {text}, own_length {sorted(own[text])}: {wrong[text]}\n"
            + program.source(text)
        )


def _value(text: str, env: Env) -> Any:
    name, _, index = text.partition("[")
    if name not in env:
        return env.get(f"error {name}")
    made = env[name][int(index[:-1])] if index else env[name]
    return made.numpy()


def _compared(
    text: str, whole: list[Row], together: Env, batch: list[Row], apart: Env, tally: Tally
) -> str | None:
    """How a tensor's rows differ; None if a run failed."""
    one, other = together[text], apart[text]
    if isinstance(one, Exception) or isinstance(other, Exception):
        if not (isinstance(one, Exception) and isinstance(other, Exception)):
            error = one if isinstance(one, Exception) else other
            if not isinstance(error, NameError):
                tally.failed[str(error).partition("}} ")[2][:90] or str(error)[:90]] += 1
        return None
    tally.compared += 1
    if one.shape[:1] != (len(whole),) or other.shape[:1] != (len(batch),):
        return f"{one.shape} of {len(whole)} rows, {other.shape} of {len(batch)}"
    if one.shape[1:] != other.shape[1:]:
        return f"{one.shape} and {other.shape}"
    places = {id(row): n for n, row in enumerate(whole)}
    for n, row in enumerate(batch):
        at = places.get(id(row))
        if at is not None and not _alike(one[at], other[n]):
            return f"{_shown(one[at])} together, {_shown(other[n])} in the batch"
    return ""


def _shown(value: Any) -> str:
    return np.array2string(np.asarray(value).ravel()[:8], precision=5)


def _alike(one: Any, other: Any) -> bool:
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype.kind not in "fV":
        return bool(np.array_equal(one, other))
    one, other = one.astype(np.float64), other.astype(np.float64)
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(all="ignore"):
        finite = np.abs(one[np.isfinite(one)])
        close = np.abs(one - other) <= _TOLERANCE * max(finite.max(initial=0), 1e-3)
    return bool((same | close).all())


def _unstable(
    runner: Runner, text: str, rows: Rows, together: Env, weights: Env, draw: Any
) -> bool:
    """Whether a tensor changes if the floats it is computed from change by a millionth."""
    expected = together[text]
    for _ in range(6):
        near = columns_of([_moved(row, draw) for row in rows.whole()]) | _moved(rows.user, draw)
        moved = runner.run(near, _moved(weights, draw))
        given = moved[text]
        if isinstance(given, Exception) or given.shape != expected.shape:
            return True
        if not all(_alike(a, b) for a, b in zip(expected, given, strict=True)):
            return True
    return False


def _moved(values: Mapping[str, Any], draw: np.random.Generator) -> Env:
    """The values, with floats changed by a millionth and denormal ones replaced by 0."""

    def moved(value: Any) -> Any:
        near = value * (1 + 1e-6 * draw.normal(size=np.shape(value)))
        return np.where(np.abs(value) < 1e-37, 0, near).astype(np.float32)

    return {
        name: moved(value) if np.asarray(value).dtype == np.float32 else value
        for name, value in values.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=1_000_000)
    parser.add_argument("--first", type=int, default=0, help="the first graph's seed")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="ends after this time")
    args = parser.parse_args()
    tally, began = Tally(), time.monotonic()
    for first in range(args.first, args.first + args.graphs, _TOGETHER):
        shown = len(tally.unsound)
        fuzz(range(first, min(first + _TOGETHER, args.first + args.graphs)), tally)
        for report in tally.unsound[shown:]:
            print(report, end="\n\n", flush=True)
        if time.monotonic() - began > args.seconds:
            break
    print(tally.line(), f"{time.process_time():.0f} s of CPU")
    for counts in (tally.failed, tally.why):
        for said, times in counts.most_common(12):
            print(f"    {times} times {said}")
    raise SystemExit(bool(tally.unsound))


if __name__ == "__main__":
    main()
