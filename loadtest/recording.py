"""What a run of requests measured."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from colcast.loadtest.connection import Answer, Request


@dataclass
class Recording:
    """The calls of one run, or of several joined by `extend`; row i is one call.

    Latencies are of answered calls only, so that errors that come back at once do not make a
    server look fast; errors are counted by code.
    """

    latencies: list[float] = field(default_factory=list)  # seconds
    codes: Counter[str] = field(default_factory=Counter)
    first_error: str = ""
    request_bytes: int = 0
    response_bytes: int = 0
    rows: int = 0
    wall_seconds: float = 0.0
    server_cpu_seconds: float = 0.0

    def add(self, request: Request, answer: Answer) -> None:
        """Counts one call."""
        self.codes[answer.code] += 1
        self.request_bytes += len(request.payload)
        if answer.code == "OK":
            self.latencies.append(answer.seconds)
            self.response_bytes += len(answer.response)
            self.rows += request.rows
        elif not self.first_error:
            self.first_error = f"{answer.code}: {answer.message}"

    def extend(self, other: Self) -> None:
        """Counts another run's calls as this one's."""
        self.latencies += other.latencies
        self.codes += other.codes
        self.first_error = self.first_error or other.first_error
        self.request_bytes += other.request_bytes
        self.response_bytes += other.response_bytes
        self.rows += other.rows
        self.wall_seconds += other.wall_seconds
        self.server_cpu_seconds += other.server_cpu_seconds

    @property
    def calls(self) -> int:
        """Calls made, failed ones too."""
        return self.codes.total()

    @property
    def errors(self) -> int:
        """Calls that did not come back OK."""
        return self.calls - self.codes["OK"]

    @property
    def per_second(self) -> float:
        """Answered requests a second."""
        return len(self.latencies) / self.wall_seconds if self.wall_seconds else 0.0

    @property
    def bytes_per_request(self) -> float:
        """Mean size of a request as it was sent."""
        return self.request_bytes / self.calls if self.calls else 0.0

    @property
    def server_cpu_ms(self) -> float:
        """Server CPU milliseconds per answered request; NaN where there was none."""
        answered = len(self.latencies)
        return 1000 * self.server_cpu_seconds / answered if answered else float("nan")

    def latency_ms(self, percentile: float) -> float:
        """A percentile of the answered calls' latencies; NaN where there was none."""
        return 1000 * float(np.percentile(self.latencies, percentile)) if self.latencies else np.nan
