"""Recordings of measured requests, and their figures for reports."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from colcast.loadtest.send.connection import Answer, Request

Seconds = npt.NDArray[np.float64]


class Call(NamedTuple):
    """One request and its answer; times in seconds since the run began."""

    due: float  # when it should have been sent; in a closed loop, when the client was free
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
    answered calls have one: quick errors would make a server look fast. Errors are counted by code.
    """

    calls: list[Call] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    first_error: str = ""
    wall_seconds: float = 0.0
    server_cpu_seconds: float = float("nan")

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
        """Adds the calls of another run, which followed this one or ran at the same time."""
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
        """Number of calls by gRPC code."""
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
        """The latency of every answered call, measured from its due time."""
        return np.array([call.answered - call.due for call in self.answered])

    @property
    def lateness(self) -> Seconds:
        """How late the generator sent every call."""
        return np.array([call.sent - call.due for call in self.calls])

    def latency_ms(self, percentile: float) -> float:
        """A percentile of the latencies; NaN if nothing was answered."""
        return percentile_ms(self.latencies, percentile)


def percentile_ms(seconds: Seconds, percentile: float) -> float:
    """A percentile in milliseconds; NaN without values."""
    return 1000 * float(np.percentile(seconds, percentile)) if len(seconds) else float("nan")


def _mean(values: list[int]) -> float:
    return sum(values) / len(values) if values else float("nan")


@dataclass(frozen=True)
class Figures:
    """The figures of one format for one set of requests; times in milliseconds, sizes in bytes.

    A figure that could not be measured is NaN (null in JSON).
    """

    calls: int
    errors: int
    requests_per_second: float
    server_cpu_ms: float
    request_bytes: float
    response_bytes: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    late_p99_ms: float
    codes: dict[str, int] = field(default_factory=dict)
    first_error: str = ""


def figures_of(recording: Recording) -> Figures:
    latencies = recording.latencies
    return Figures(
        calls=len(recording.calls),
        errors=recording.errors,
        requests_per_second=recording.per_second,
        server_cpu_ms=recording.server_cpu_ms,
        request_bytes=recording.bytes_per_request,
        response_bytes=recording.bytes_per_response,
        p50_ms=percentile_ms(latencies, 50),
        p95_ms=percentile_ms(latencies, 95),
        p99_ms=percentile_ms(latencies, 99),
        late_p99_ms=percentile_ms(recording.lateness, 99),
        codes=dict(recording.codes),
        first_error=recording.first_error,
    )


def milliseconds(value: float) -> str:
    """Formats milliseconds: two decimals below 10, one below 100; a dash if not measured."""
    if value != value:
        return "-"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def share(value: float, of: float) -> str:
    """Formats a percentage; a dash if one of the values was not measured."""
    return "-" if value != value or not of > 0 else f"{100 * value / of:.0f} %"


def finite(value: Any) -> Any:
    """Replaces NaN and infinities, which JSON lacks, by null; dataclasses become objects."""
    if is_dataclass(value) and not isinstance(value, type):
        return finite(asdict(value))
    if isinstance(value, Mapping):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
