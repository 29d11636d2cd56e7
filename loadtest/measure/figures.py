"""The figures of a recording for reports, as plain values for JSON and as text."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any

from colcast.loadtest.measure.recording import Recording, percentile_ms


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

    def as_json(self) -> dict[str, Any]:
        """The figures with null for NaN, which JSON does not have."""
        values: dict[str, Any] = finite(self)
        return values


def figures_of(recording: Recording) -> Figures:
    """Computes the figures of a recording."""
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
    """Two decimals below ten, one below a hundred; a dash if it was not measured."""
    if value != value:
        return "-"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def share(value: float, of: float) -> str:
    """A percentage; a dash if one of the values was not measured."""
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
