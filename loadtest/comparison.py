"""Formats of the same requests side by side: a little of each in turn, so noise hits all alike."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from colcast.loadtest.closed_loop import ClosedLoop
from colcast.loadtest.connection import Request
from colcast.loadtest.process import Meter
from colcast.loadtest.recording import Recording


@dataclass(frozen=True)
class Rounds:
    """How much to send: every round sends `calls` of each format, after `warm_up` calls once."""

    rounds: int = 10
    calls: int = 20
    warm_up: int = 10


def compare(
    formats: Mapping[str, Sequence[Request]],
    clients: ClosedLoop,
    rounds: Rounds,
    *,
    meter: Meter | None = None,
    progress: Callable[[], None] = lambda: None,
) -> dict[str, Recording]:
    """Sends every format's requests in turn, the first one changing from round to round.

    Args:
      formats: name -> the same requests in this format.
      clients: who sends them.
      rounds: how often and how many.
      meter: what the server has used, where that is known.
      progress: called after every format of every round.

    Returns:
      Name -> everything measured after the warm-up.
    """
    names = list(formats)
    recordings = {name: Recording() for name in names}
    for name in names:
        clients.run(formats[name], calls=rounds.warm_up)
    for turn in range(rounds.rounds):
        for position in range(len(names)):
            name = names[(turn + position) % len(names)]
            recordings[name].extend(clients.run(formats[name], calls=rounds.calls, meter=meter))
            progress()
    return recordings
