"""What another client waits for while something else goes on: its calls alone, then beside it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.recording import Recording
from colcast.loadtest.variants import LATENCY, Variant, for_seconds, one_by_one, other

GREW = other("memory, MB", ",.0f")
BESIDE = (*LATENCY, GREW)


@dataclass
class GoingOn:
    """What goes on beside calls.

    Attributes:
      more: whether to call again, given how many were answered; None: for the usual seconds.
      told: figures by heading, complete once it has ended.
    """

    more: Callable[[int], object] | None = None
    told: dict[str, Any] = field(default_factory=dict)


def alone_and_beside(
    call: Callable[[], object],
    going_on: Callable[[], AbstractContextManager[GoingOn]],
    pid: int,
    seconds: tuple[float, float] = (2, 2),
    at_least: int = 1,
    title: str = "beside it",
) -> list[Variant]:
    """One call after the other, alone and while something goes on.

    Args:
      call: of the other client.
      going_on: entered for each turn beside it.
      pid: the server's process, whose CPU and memory count: `GREW` is its peak beside it.
      seconds: of a turn alone, and beside it.
      at_least: calls of such a turn.
      title: of the second variant.
    """
    meter = ProcessMeter(pid)

    def alone(_: int) -> Recording:
        return one_by_one(call, for_seconds(seconds[0], at_least), meter)

    def beside(number: int) -> Recording:
        if number < 0:
            return Recording()
        before = meter.memory_bytes()
        meter.forget_peak()
        with going_on() as it:
            found = one_by_one(call, it.more or for_seconds(seconds[1], at_least), meter)
        found.others = {GREW.heading: (meter.peak_memory_bytes() - before) / 1e6, **it.told}
        return found

    return [Variant("alone", alone), Variant(title, beside)]
