"""The measurements of a run of requests."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from colcast.loadtest.send.connection import Answer, Request

Seconds = npt.NDArray[np.float64]


class Call(NamedTuple):
    """One request and its answer; times in seconds since the run began."""

    due: float  # when it should have been sent; for a client that waits, when it became free
    sent: float
    answered: float
    code: str  # name of the gRPC code
    rows: int
    request_bytes: int
    response_bytes: int


class Sample(NamedTuple):
    """An answer to `requests[request]` that is checked after the run."""

    request: int
    response: bytes


@dataclass
class Recording:
    """The calls of one run, or of several runs joined by `extend`.

    A latency starts when a call was due, so it includes the delay of a late generator. Only
    answered calls have a latency, so that errors that return at once do not make a server look
    fast; errors are counted by code.
    """

    calls: list[Call] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    first_error: str = ""
    wall_seconds: float = 0.0
    server_cpu_seconds: float = float("nan")
    others: dict[str, Any] = field(default_factory=dict)

    def add(self, request: Request, answer: Answer, began: float, due: float | None = None) -> None:
        """Adds one call.

        Args:
          request: the request.
          answer: its answer.
          began: when the run began, by time.perf_counter().
          due: when the call was due, in seconds since `began`; by default when it was sent.
        """
        sent = answer.sent_at - began
        self.calls.append(
            Call(
                due=sent if due is None else due,
                sent=sent,
                answered=answer.answered_at - began,
                code=answer.code,
                rows=request.rows,
                request_bytes=len(request.payload),
                response_bytes=len(answer.response),
            )
        )
        if answer.code != "OK" and not self.first_error:
            self.first_error = f"{answer.code}: {answer.message}"

    def extend(self, other: "Recording", *, after: bool = True) -> None:
        """Adds the calls of another run, made after these or at the same time."""
        shift = self.wall_seconds if after else 0.0
        self.calls += [
            call._replace(
                due=call.due + shift, sent=call.sent + shift, answered=call.answered + shift
            )
            for call in other.calls
        ]
        self.samples += other.samples
        self.first_error = self.first_error or other.first_error
        self.wall_seconds = shift + other.wall_seconds
        if np.isnan(self.server_cpu_seconds):
            self.server_cpu_seconds = other.server_cpu_seconds
        else:
            self.server_cpu_seconds += other.server_cpu_seconds

    @property
    def codes(self) -> Counter[str]:
        """Number of calls by the gRPC code with which they ended."""
        return Counter(call.code for call in self.calls)

    @property
    def answered(self) -> list[Call]:
        """The calls that returned OK."""
        return [call for call in self.calls if call.code == "OK"]

    @property
    def errors(self) -> int:
        """The number of calls that did not return OK."""
        return len(self.calls) - len(self.answered)

    @property
    def per_second(self) -> float:
        """Answered requests per second."""
        return len(self.answered) / self.wall_seconds if self.wall_seconds else 0.0

    @property
    def bytes_per_request(self) -> float:
        """Mean size of a sent request; NaN if there was none."""
        return _mean([call.request_bytes for call in self.calls])

    @property
    def bytes_per_response(self) -> float:
        """Mean size of an answer; NaN if there was none."""
        return _mean([call.response_bytes for call in self.answered])

    @property
    def server_cpu_ms(self) -> float:
        """Server CPU milliseconds per answered request; NaN if it is not known."""
        return 1000 * self.server_cpu_seconds / (len(self.answered) or float("nan"))

    @property
    def latencies(self) -> Seconds:
        """The latency of every answered call, from when it was due to its answer."""
        return np.array([call.answered - call.due for call in self.answered])

    @property
    def lateness(self) -> Seconds:
        """The generator's own delay of every call: from when it was due to when it was sent."""
        return np.array([call.sent - call.due for call in self.calls])

    def latency_ms(self, percentile: float) -> float:
        """A percentile of the latencies; NaN if nothing was answered."""
        return percentile_ms(self.latencies, percentile)


def percentile_ms(seconds: Seconds, percentile: float) -> float:
    """A percentile in milliseconds; NaN of nothing."""
    return 1000 * float(np.percentile(seconds, percentile)) if len(seconds) else float("nan")


def _mean(values: list[int]) -> float:
    return sum(values) / len(values) if values else float("nan")
