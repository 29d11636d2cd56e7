"""Proves that the stages answer like the late signature, however rows are batched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from colcast.export.cut._pair import index_key, number_key, state_key
from colcast.export.graph._colours import ITEM, PAIR, USER
from colcast.export.graph._comparison import (
    PERTURBED,
    PROOF_ROWS,
    Trial,
    compare_trials,
    rounding_noise,
)
from colcast.export.graph._errors import ExportError
from colcast.export.graph._findings import Probe
from colcast.export.graph._requests import Array, Columns, Request, Requests, draw_rows, trimmed

_USERS = 3
_ROUNDS = 2  # draws for each number of candidates
_TRIES = 5
_ALONE = 7  # rows whose states are also computed alone

States = list[Array]


@dataclass(frozen=True)
class Runner:
    """Runs the late signature and the stages, each on columns or states by name.

    Attributes:
        late: the late signature.
        stages: the stages' probes by domain.
        pair: the last stage.
        columns: column names by domain; under PAIR, columns that the last stage reads.
    """

    late: Probe
    stages: Mapping[str, Probe]
    pair: Probe
    columns: Mapping[str, Sequence[str]]

    def states(self, domain: str, columns: Columns) -> States:
        """The states of all rows in a batch."""
        return list(self.stages[domain](columns).values())

    def score(
        self, states: Mapping[str, States], index: Mapping[str, Array], candidates: Columns
    ) -> dict[str, Array]:
        """The outputs for states, the index of each domain's rows, and the candidates' columns."""
        given = dict(candidates)
        for domain, of_rows in states.items():
            given |= {state_key(domain, k): state for k, state in enumerate(of_rows)}
            if domain != ITEM:
                given[number_key(domain)] = np.arange(len(of_rows[0]))
                given[index_key(domain)] = index[domain]
        return self.pair(given)

    def noise(
        self, request: Request, expected: Mapping[str, Array], noisy_runs: int
    ) -> Mapping[str, Array]:
        """How much the late signature's outputs change if a request's inputs are rounded."""
        return rounding_noise(
            lambda rounded: self.late(rounded.once()), request, expected, noisy_runs
        )


@dataclass(frozen=True)
class _Draw:
    """Rows of every domain, and for each candidate the rows that it reads.

    Attributes:
        columns: columns by domain; under PAIR, columns that the last stage reads.
        index: each candidate's row, for all domains except ITEM and PAIR, whose rows are the
            candidates.
        states: states of the domains that have been run.
    """

    columns: Mapping[str, Columns]
    index: Mapping[str, Array]
    states: dict[str, States] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The number of candidates."""
        return len(self.index[USER])

    def request(self, user: int, rows: Array) -> Request:
        """A request to the late signature: one user and some candidates."""
        items: dict[str, Array] = {}
        for domain, columns in self.columns.items():
            own = self.index[domain][rows] if domain in self.index else rows
            if domain != USER:
                items |= {name: column[own] for name, column in columns.items()}
        alone = {name: column[user : user + 1] for name, column in self.columns[USER].items()}
        return Request(trimmed(alone), trimmed(items), {})


class StagesProof:
    """Compares stages with the late signature on the same draws, for one user and several.

    Attributes:
        runner: runs the stages and the late signature.
    """

    def __init__(self, runner: Runner, requests: Requests, tolerance: float) -> None:
        """Creates a proof.

        Args:
            runner: runs the stages and the late signature.
            requests: draws rows.
            tolerance: the largest relative difference allowed.
        """
        self.runner, self._requests, self._tolerance = runner, requests, tolerance

    @cached_property
    def _draws(self) -> list[_Draw]:
        draws = [rows for rows in PROOF_ROWS for _ in range(_ROUNDS)]
        return [_draw(self.runner, self._requests, rows) for rows in draws]

    def compare(self, *, several_users: bool = False) -> Mapping[str, float]:
        """Compares requests of one user each, or runs with the candidates of several users.

        Each state is taken from one of several batches: the whole batch, a shuffled one with a
        repeated row, or a single row. The states of a request's only user are computed alone.

        Raises:
            ExportError: results differ, or one run cannot take the states of several users.
        """
        tried = _of_several_users if several_users else _of_one_user
        noisy_runs = PERTURBED if self._tolerance else 0
        trials = [tried(self.runner, draw, noisy_runs) for draw in self._draws]
        by_rows = compare_trials(trials, self._tolerance)
        outputs = trials[0].expected
        return {output: max(by[output] for by in by_rows.values()) for output in outputs}


def _draw(runner: Runner, requests: Requests, rows: int) -> _Draw:
    """Draws rows, again if the late signature fails for one of the users alone."""
    random = np.random.default_rng(rows)
    counts = dict.fromkeys(runner.columns, (rows + 1) // 2)
    counts |= {USER: _USERS, ITEM: rows, PAIR: rows}
    for left in reversed(range(_TRIES)):
        columns = draw_rows(requests, _USERS + rows)
        firsts = {domain: 0 if domain == USER else _USERS for domain in counts}
        draw = _Draw(
            {
                domain: {name: columns[name][first : first + counts[domain]] for name in names}
                for domain, names in runner.columns.items()
                for first in [firsts[domain]]
            },
            {d: random.integers(counts[d], size=rows) for d in counts if d not in (ITEM, PAIR)},
        )
        try:
            for user in range(_USERS):
                for count in sorted({1, rows}):
                    runner.late(draw.request(user, np.arange(count)).once())
        except ExportError:
            if not left:
                raise
        else:
            return draw
    raise AssertionError


def _of_one_user(runner: Runner, draw: _Draw, noisy_runs: int) -> Trial:
    request = draw.request(0, np.arange(draw.rows))
    expected = runner.late(request.once())
    states = {USER: runner.states(USER, request.user), **_states(runner, draw, but=USER)}
    index = {**draw.index, USER: np.zeros(1, np.int64)}
    candidates = {name: request.items[name] for name in draw.columns[PAIR]}
    given = runner.score(states, index, candidates)
    return Trial(draw.rows, expected, given, runner.noise(request, expected, noisy_runs))


def _of_several_users(runner: Runner, draw: _Draw, noisy_runs: int) -> Trial:
    given = runner.score(_states(runner, draw), draw.index, draw.columns[PAIR])
    expected = {name: np.zeros_like(value) for name, value in given.items()}
    noise = {name: np.zeros(value.shape) for name, value in given.items()}
    for user in range(_USERS):
        own = np.flatnonzero(draw.index[USER] == user)
        if not own.size:
            continue
        request = draw.request(user, own)
        scores = runner.late(request.once())
        noises = runner.noise(request, scores, noisy_runs)
        for name, value in scores.items():
            if value.shape != (own.size, *given[name].shape[1:]) or len(given[name]) != draw.rows:
                raise ExportError(f"output {name!r} does not have one row per candidate")
            expected[name][own], noise[name][own] = value, noises[name]
    return Trial(draw.rows, expected, given, noise)


def _states(runner: Runner, draw: _Draw, but: str = "") -> dict[str, States]:
    domains = [domain for domain in runner.stages if domain != but]
    for domain in domains:
        if domain not in draw.states:
            draw.states[domain] = _shared(runner, domain, draw.columns[domain])
    return {domain: draw.states[domain] for domain in domains}


def _shared(runner: Runner, domain: str, columns: Columns) -> States:
    """Each row's state, taken from a run of all rows, of shuffled rows, or of that row alone."""
    rows = len(next(iter(columns.values())))
    order = np.random.default_rng(rows).permutation([*range(rows), 0])
    back = [int(np.flatnonzero(order == row)[0]) for row in range(rows)]
    whole = runner.states(domain, columns)
    mixed = runner.states(domain, {name: column[order] for name, column in columns.items()})
    alone = [
        runner.states(domain, trimmed({n: c[row : row + 1] for n, c in columns.items()}))
        for row in range(min(rows, _ALONE))
    ]
    states = []
    for number, state in enumerate(whole):
        state = state.copy()
        for row in range(rows):
            own = alone[row][number] if row < len(alone) else None
            if row % 3 == 1 and mixed[number].shape[1:] == state.shape[1:]:
                state[row] = mixed[number][back[row]]
            elif row % 3 == 2 and own is not None and own.shape[1:] == state.shape[1:]:
                state[row] = own[0]
        states.append(state)
    return states
