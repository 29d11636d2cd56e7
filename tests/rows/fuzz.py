"""Checks the rule on random graphs: `python -m tests.rows.fuzz --graphs 1000`.

Every tensor that the rule calls independent is computed for some rows together, for each alone, in
another order, repeated, and beside rows with longer lists; with NaN, infinities and empty lists;
and with other weights. Lists that the rule names are equally long in all runs that are compared.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf
from colcast.export.graph._nodes import FlatGraph, producer
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
    computed,
    draw_row,
    draw_user,
    in_graph,
    of_user,
    placeholders,
)

v1 = tf.compat.v1
Verdict = tuple[bool, tuple[str, ...] | str]
_TOGETHER = 10  # programs that share a graph, which costs more than its tensors
_NORMAL = 5
_TOLERANCE = 2e-4
_LIKE = {"paired": "ids"}  # a list that is always as long as another
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
        ops: types of ops whose outputs the rule knows to depend on rows in some way.
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
    ops: set[str] = field(default_factory=set)
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


def fuzz(
    seeds: Sequence[int], tally: Tally, given: Sequence[str | Callable[[Env], Any]] = ()
) -> list[Verdict]:
    """Checks one program for each seed, a random one or one of `given`; they share a graph.

    Returns the verdicts on the programs' last tensors.
    """
    drawn = Rows.drawn(np.random.default_rng(seeds[0]), hostile=False)
    programs = []
    with tf.Graph().as_default() as graph, v1.Session(graph=graph, config=_CONFIG) as session:
        columns = placeholders()
        tensors = in_graph(columns)
        example = drawn.columns(drawn.whole())
        examples = {} if given else computed(tensors, example, session)
        for number, seed in enumerate(seeds):
            generator = Generator(seed, examples, tensors)
            steps = int(np.random.default_rng(seed).integers(5, 26))
            programs.append(generator.given(given[number]) if given else generator.grow(steps))
        slots = [slot for program in programs for slot in program.made()]
        session.run(v1.tables_initializer())
        found = _verdicts(session, columns, [slot.graph.name for slot in slots], tally)
        own = dict[str, frozenset[str]]()
        of = dict[str, tuple[Program, Slot]]()
        for program in programs:
            tally.graphs += 1
            tally.steps += len(program.steps)
            tally.refused += program.refused
            tally.tensors += len(program.made())
            for slot in program.made():
                rows, names = found[slot.graph.name]
                if rows:
                    own[slot.graph.name] = frozenset(_LIKE.get(name, name) for name in names) - {
                        "seen"
                    }
                    of[slot.graph.name] = program, slot
                else:
                    tally.why[str(names)[:60]] += 1
        tally.independent += len(own)
        if own:
            runner = Runner(session, columns, list(own))
            wrong = _check(seeds[0], programs, runner, _assigner(session, programs), own, tally)
            for program in programs:
                mine = [name for name in own if name in wrong and of[name][0] is program]
                for name in mine[:1]:
                    text = of[name][1].text
                    said = f"{text}, own_length {sorted(own[name])}: {wrong[name]}"
                    tally.unsound.append(f"seeds from {seeds[0]}, {said}\n{program.source(text)}")
    return [found[program.slots[-1].graph.name] for program in programs] if given else []


def _verdicts(
    session: v1.Session, columns: Env, wanted: Sequence[str], tally: Tally
) -> dict[str, Verdict]:
    """The rule's verdict on each tensor."""
    graph = FlatGraph(v1.train.export_meta_graph(graph=session.graph), wanted)
    names = {name: tensor.name for name, tensor in columns.items()}
    user = {name: tensor for name, tensor in names.items() if of_user(name)}
    items = {name: tensor for name, tensor in names.items() if not of_user(name)}
    given = {**rows_of(items, session.graph), **rows_of(user, session.graph, rows=())}
    facts = Walk(graph, session, given).facts
    known = {producer(t) for t, fact in facts.items() if fact.kind not in ("fixed", "mixed")}
    tally.ops.update(graph.nodes[name].op for name in known & graph.nodes.keys())
    return {tensor: verdict(facts[tensor]) for tensor in wanted}


class Runner:
    """Computes tensors in one run; once it fails, each half of them has runs of its own."""

    def __init__(self, session: v1.Session, columns: Env, wanted: Sequence[str]) -> None:
        self._session, self._columns, self._wanted = session, columns, wanted
        self._call = _callable(session, [column.name for column in columns.values()], wanted)
        self._halves: list[Runner] = []

    def run(self, columns: Env) -> Env:
        """The tensors, or errors, by name."""
        if not self._halves:
            try:
                fed = (columns[name] for name in self._columns)
                return dict(zip(self._wanted, self._call(*fed), strict=True))
            except tf.errors.OpError as error:
                half = len(self._wanted) // 2
                if not half:
                    return {self._wanted[0]: error}
                halves = self._wanted[:half], self._wanted[half:]
                self._halves = [Runner(self._session, self._columns, each) for each in halves]
        return self._halves[0].run(columns) | self._halves[1].run(columns)


def _assigner(session: v1.Session, programs: Sequence[Program]) -> Callable[[Sequence[Env]], None]:
    """A function that assigns each program's weights."""
    names = [(number, name) for number, each in enumerate(programs) for name in each.variables]
    if not names:
        return lambda _: None
    made = [programs[number].variables[name].initializer for number, name in names]
    fed, targets = [each.inputs[1].name for each in made], [each.name for each in made]
    assign = _callable(session, fed, [], targets)
    return lambda weights: assign(*(weights[number][name] for number, name in names))


def _callable(
    session: v1.Session, fed: Sequence[str], fetched: Sequence[str], targets: Sequence[str] = ()
) -> Callable[..., Any]:
    """As Session.make_callable, which takes milliseconds more for each call."""
    options = CallableOptions(feed=fed, fetch=fetched, target=targets)
    return session._make_callable_from_options(options)  # type: ignore[no-any-return]


def _check(
    seed: int,
    programs: Sequence[Program],
    runner: Runner,
    assign: Callable[[Sequence[Env]], None],
    own: Mapping[str, frozenset[str]],
    tally: Tally,
) -> dict[str, str]:
    """Compares the rows of independent tensors; says what is wrong with any."""
    compared, wrong = set[str](), dict[str, str]()
    for number in range(3):
        draw = np.random.default_rng([seed, number])
        rows = Rows.drawn(draw, hostile=number > 0)
        weights = [each.redrawn(draw) if number > 1 else each.values for each in programs]
        assign(weights)
        whole = rows.whole()
        together = runner.run(rows.columns(whole))
        for names in sorted(set(own.values()), key=sorted):
            for batch in rows.batches(names, draw):
                apart = runner.run(rows.columns(batch))
                for name in (name for name, each in own.items() if each == names):
                    said = _compared(name, whole, together, batch, apart, tally)
                    compared |= {name} if said is not None else set()
                    if said and name not in wrong:
                        wrong[name] = f"draw {number}, batch of {len(batch)}: {said}"
        for name in [name for name in wrong if wrong[name].startswith(f"draw {number}")]:
            if _unstable(runner, assign, name, rows, together[name], weights, draw):
                tally.unstable += 1
                del wrong[name]
    tally.without_run += len(own.keys() - compared)
    return wrong


def _compared(
    name: str, whole: list[Row], together: Env, batch: list[Row], apart: Env, tally: Tally
) -> str | None:
    """How a tensor's rows differ; None if a run failed."""
    one, other = together[name], apart[name]
    if isinstance(one, Exception) or isinstance(other, Exception):
        if not (isinstance(one, Exception) and isinstance(other, Exception)):
            error = str(one if isinstance(one, Exception) else other)
            tally.failed[error.partition("}} ")[2][:90] or error[:90]] += 1
        return None
    tally.compared += 1
    if one.shape[:1] != (len(whole),) or other.shape[:1] != (len(batch),):
        return f"{one.shape} of {len(whole)} rows, {other.shape} of {len(batch)}"
    if one.shape[1:] != other.shape[1:]:
        return f"{one.shape} and {other.shape}"
    places = {id(row): n for n, row in enumerate(whole)}
    there = [n for n, row in enumerate(batch) if id(row) in places]
    one, other = one[[places[id(batch[n])] for n in there]], other[there]
    alike = _alike(one, other)
    n = int(alike.argmin())
    return "" if alike[n] else f"{_shown(one[n])} together, {_shown(other[n])} in the batch"


def _shown(value: Any) -> str:
    return np.array2string(np.asarray(value).ravel()[:8], precision=5)


def _alike(one: Any, other: Any) -> Any:
    """Which rows are equal, or close beside the row's largest number.

    A sum of numbers near the largest float is infinite if they are added in one order, and finite
    in another; products of several rows use another than those of one. Infinities may differ in
    sign: it may be that of a zero divisor, and Relu of -0 is 0 or -0 by its place in a run.
    """
    inner = tuple(range(1, one.ndim))
    if one.dtype.kind not in "fV":
        return (one == other).all(inner)
    large = float(tf.as_dtype(one.dtype).max) / 100
    one, other = one.astype(np.float64), other.astype(np.float64)
    same = (one == other) | (np.isnan(one) & np.isnan(other)) | (np.isinf(one) & np.isinf(other))
    overflows = np.isinf(one) != np.isinf(other)
    same |= overflows & (np.minimum(np.abs(one), np.abs(other)) > large)
    with np.errstate(all="ignore"):
        size = np.where(np.isfinite(one), np.abs(one), 0).max(inner, keepdims=True, initial=1e-3)
        return (same | (np.abs(one - other) <= _TOLERANCE * size)).all(inner)


def _unstable(
    runner: Runner,
    assign: Callable[[Sequence[Env]], None],
    name: str,
    rows: Rows,
    expected: Any,
    weights: Sequence[Env],
    draw: np.random.Generator,
) -> bool:
    """Whether a tensor changes if the floats it is computed from change by a millionth."""
    for _ in range(6):
        near = columns_of([_moved(row, draw) for row in rows.whole()]) | _moved(rows.user, draw)
        assign([_moved(each, draw) for each in weights])
        given = runner.run(near)[name]
        if isinstance(given, Exception) or given.shape != expected.shape:
            return True
        if not _alike(expected, given).all():
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
