"""No answer depends on what it ran beside, was split into, or was kept from."""

from collections.abc import Callable

import pytest
from colcast.server import ServerProcess

from ..models import Expected
from ..server.metrics_page import Metrics
from ..waiting import wait_until
from .cases import Case
from .conftest import ANSWERS, EACH, Models
from .hammer import Tally, busy, hammer

pytestmark = pytest.mark.timeout(3600 if ANSWERS else 900)


def test_every_answer_is_the_original_models(
    group: Models, cases: Callable[[str], list[Case]], server: ServerProcess, variant: str
) -> None:
    """All models first, so that one that fails does not hide the others."""
    found = {name: hammer(server, name, cases(name), EACH) for name in group}
    wrong = [
        f"{name}, {kind}: {said}"
        for name, tallies in found.items()
        for kind, tally in tallies.items()
        for said in _complaints(group[name].model.expected, variant, kind, tally)
    ]
    assert not wrong, "\n".join(["", *wrong])
    for name, exported in group.items():
        if exported.model.expected is Expected.INDEPENDENT:
            _check_gain(server, name, cases(name), variant)
        elif exported.model.expected is Expected.INTERACTING:
            assert _sum(server, "joined_requests", name) == 0, name
            assert _sum(server, "divided_requests", name) == 0, name


def _complaints(expected: Expected, variant: str, kind: str, tally: Tally) -> list[str]:
    found = []
    if tally.wrong:
        found.append(f"{tally.wrong} of {tally.answers} wrong, such as {tally.shown}")
    if tally.inexact and "batching" not in variant and variant != "late examples":
        found.append(f"{tally.inexact} of {tally.answers} differ in bits")
    # Outputs without rows belong to no user.
    may_refuse = expected is Expected.INTERACTING and kind == "late of users"
    refused = (
        f"{times} times {said}"
        for said, times in tally.refused.items()
        if not (may_refuse and said.startswith("FAILED_PRECONDITION: output "))
    )
    return [*found, *refused]


def _check_gain(server: ServerProcess, name: str, cases: list[Case], variant: str) -> None:
    """Whether rows that are independent are found, joined and split."""
    for store in ("user", "item"):
        assert _sum(server, "states_found", name, store=store), (name, store)
    late = [case for case in cases if case.format == "late"]
    alone = max((case for case in cases if case.format == "repeated"), key=lambda c: len(c.message))

    def some_ran_together() -> bool:
        with busy(server, alone):
            hammer(server, name, late, EACH)
        return _sum(server, "joined_requests", name) > 0

    wait_until(some_ran_together)
    if variant == "batching, split":
        assert _sum(server, "divided_requests", name), name


def _sum(server: ServerProcess, metric: str, name: str, **labels: str) -> float:
    wanted = {"model_name": name, **labels}.items()
    found = (s for s in Metrics(server).samples if s.name == f":colcast:{metric}_total")
    return sum(sample.value for sample in found if wanted <= sample.labels.items())
