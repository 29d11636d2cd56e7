"""Proves that the stages answer like the late signature, however rows are batched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from colcast.export.convert._features import Feature
from colcast.export.cut._pair import index_key, number_key, state_key
from colcast.export.graph._colours import ITEM, PAIR, USER
from colcast.export.graph._comparison import PROOF_ROWS, Trial, compare_trials, rounding_noise
from colcast.export.graph._errors import ExportError
from colcast.export.graph._probe import Probe
from colcast.export.graph._sessions import Array, Columns
from colcast.export.trials._requests import Requests
from colcast.export.trials._rows import Rows

_USERS = 3
_ROUNDS = 2  # draws for each number of candidates
_TRIES = 5
_ALONE = 7  # rows whose states are also computed alone

States = list[Array]


@dataclass(frozen=True)
class _Draw:
    """Rows of every domain, and the rows that each candidate reads.

    Attributes:
        of: rows by domain; under PAIR, those that the last stage reads.
        index: each candidate's row, for all domains except ITEM and PAIR, whose rows are the
            candidates.
        states: states of the domains that have been run.
        expected: the late signature's outputs for the first user and all candidates.
    """

    of: Mapping[str, Rows]
    index: Mapping[str, Array]
    states: dict[str, States] = field(default_factory=dict)
    expected: dict[str, Array] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The number of candidates."""
        return len(self.index[USER])

    @property
    def candidates(self) -> Columns:
        """The columns that the last stage reads."""
        return self.of[PAIR].columns() if PAIR in self.of else {}

    def request(self, user: int, rows: Array) -> Rows:
        """A request to the late signature: one user and some candidates."""
        chosen = {domain: index[rows] for domain, index in self.index.items()}
        chosen[USER] = np.full(len(rows), user)
        parts = [own.take(chosen.get(domain, rows)) for domain, own in self.of.items()]
        features = tuple(feature for part in parts for feature in part.features)
        return Rows(features, {name: of for part in parts for name, of in part.cells.items()})


class StagesProof:
    """Compares stages with the late signature on the same draws, for one user and several.

    Attributes:
        stages: the stages' probes by domain.
    """

    def __init__(
        self,
        late: Probe,
        stages: Mapping[str, Probe],
        pair: Probe,
        features: Mapping[str, Sequence[Feature]],
        requests: Requests,
        tolerance: float,
        own_length: Mapping[str, Sequence[str]],
    ) -> None:
        """Creates a proof.

        Args:
            late: runs the late signature.
            stages: the probes of the stages, by domain.
            pair: runs the last stage.
            features: features by domain; under PAIR, those that the last stage reads.
            requests: draws rows.
            tolerance: the largest relative difference allowed.
            own_length: by domain, the lists whose longest in a request its states depend on.
        """
        self._own_length = own_length
        self.stages, self._late, self._pair, self._features = stages, late, pair, features
        self._requests, self._tolerance = requests, tolerance

    @cached_property
    def _draws(self) -> list[_Draw]:
        return [self._draw(rows) for rows in PROOF_ROWS for _ in range(_ROUNDS)]

    def compare(self, *, several_users: bool = False) -> Mapping[str, float]:
        """Compares requests of one user or, with `several_users`, runs for several users.

        Each state comes from one of several batches: the whole batch, a shuffled one with a
        repeated row, or a single row. The states of a request's only user are computed alone.

        Raises:
            ExportError: results differ, or one run cannot read the states of several users.
        """
        tried = self._of_several_users if several_users else self._of_one_user
        trials = [tried(draw) for draw in self._draws]
        by_rows = compare_trials(trials, self._tolerance)
        outputs = trials[0].expected
        return {output: max(by[output] for by in by_rows.values()) for output in outputs}

    def _draw(self, rows: int) -> _Draw:
        """Draws rows that the late signature accepts for each user alone."""
        random = np.random.default_rng(rows)
        counts = dict.fromkeys(self._features, (rows + 1) // 2)
        counts |= {USER: _USERS, ITEM: rows, PAIR: rows}
        for left in reversed(range(_TRIES)):
            drawn = self._requests.draw_rows(_USERS + rows)
            draw = _Draw(
                {
                    domain: Rows(own, {f.name: drawn.cells[f.name] for f in own})[
                        first : first + counts[domain]
                    ]
                    for domain, own in self._features.items()
                    for first in [0 if domain == USER else _USERS]
                },
                {d: _index(random, d, counts[d], rows) for d in counts if d not in (ITEM, PAIR)},
            )
            try:
                for user in range(_USERS):
                    for count in sorted({1, rows}):
                        answer = self._late(draw.request(user, np.arange(count)).once())
                        if user == 0:
                            draw.expected.update(answer)  # the last answer has all candidates
            except ExportError:
                if not left:
                    raise
            else:
                return draw
        raise AssertionError

    def _of_one_user(self, draw: _Draw) -> Trial:
        request = draw.request(0, np.arange(draw.rows))
        user = Rows(self._features[USER], request.cells)[:1]
        states = {USER: self._states_of(USER, user), **self._states(draw, but=USER)}
        index = {**draw.index, USER: np.zeros(1, np.int64)}
        given = self._score(states, index, draw.candidates)
        noise = partial(self._noise, request, draw.expected) if self._tolerance else None
        return Trial(draw.rows, draw.expected, given, noise)

    def _of_several_users(self, draw: _Draw) -> Trial:
        given = self._score(self._states(draw), draw.index, draw.candidates)
        expected = {name: np.zeros_like(value) for name, value in given.items()}
        asked: list[tuple[Array, Rows, dict[str, Array]]] = []
        for user in range(_USERS):
            own = np.flatnonzero(draw.index[USER] == user)
            if not own.size:
                continue
            request = draw.request(user, own)
            scores = self._late(request.once())
            asked.append((own, request, scores))
            for name, value in scores.items():
                shape = (own.size, *given[name].shape[1:])
                if value.shape != shape or len(given[name]) != draw.rows:
                    raise ExportError(f"output {name!r} does not have one row per candidate")
                expected[name][own] = value

        def noise() -> Mapping[str, Array]:
            found = {name: np.zeros(value.shape) for name, value in given.items()}
            for own, request, scores in asked:
                for name, of_user in self._noise(request, scores).items():
                    found[name][own] = of_user
            return found

        return Trial(draw.rows, expected, given, noise if self._tolerance else None)

    def _states(self, draw: _Draw, but: str = "") -> dict[str, States]:
        domains = [domain for domain in self.stages if domain != but]
        for domain in domains:
            if domain not in draw.states:
                draw.states[domain] = self._shared(domain, draw.of[domain])
        return {domain: draw.states[domain] for domain in domains}

    def _shared(self, domain: str, of: Rows) -> States:
        """Each row's state, from a run of all rows, of shuffled rows, or of that row alone."""
        rows = len(of)
        order = np.random.default_rng(rows).permutation([*range(rows), 0])
        back = [int(np.flatnonzero(order == row)[0]) for row in range(rows)]
        whole = self._states_of(domain, of)
        mixed = self._states_of(domain, of.take(order))
        # A row runs beside those with the request's longest lists, if its states depend on them.
        longest = [int(np.argmax(of.cells[n].counts)) for n in self._own_length.get(domain, ())]
        alone = [
            self._states_of(domain, of.take([row, *longest])) for row in range(min(rows, _ALONE))
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

    def _states_of(self, domain: str, rows: Rows) -> States:
        """The states of all rows in a batch."""
        return list(self.stages[domain](rows.columns()).values())

    def _score(
        self, states: Mapping[str, States], index: Mapping[str, Array], candidates: Columns
    ) -> dict[str, Array]:
        """Runs the last stage on states, each domain's index, and the candidates' columns."""
        given = dict(candidates)
        for domain, of_rows in states.items():
            given |= {state_key(domain, k): state for k, state in enumerate(of_rows)}
            if domain != ITEM:
                given[number_key(domain)] = np.arange(len(of_rows[0]))
                given[index_key(domain)] = index[domain]
        return self._pair(given)

    def _noise(self, request: Rows, expected: Mapping[str, Array]) -> Mapping[str, Array]:
        """How much the late signature's outputs change if a request's inputs are rounded."""
        return rounding_noise(lambda random: self._late(request.rounded(random).once()), expected)


def _index(random: np.random.Generator, domain: str, count: int, rows: int) -> Array:
    """A row of a domain for each candidate. Except for users, every row is used."""
    if domain == USER:
        return random.integers(count, size=rows)
    return random.permutation(np.arange(rows) % count)
