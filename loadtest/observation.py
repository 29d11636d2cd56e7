"""What a stretch of load came to in plain values, which `colcast capacity` reads again."""

from typing import Any

import numpy as np
from colcast.loadtest.open_loop import kept_up
from colcast.loadtest.recording import Recording

QUANTILES = (1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9)


def observed(recording: Recording) -> dict[str, Any]:
    """Calls, errors, CPU, users found, latencies; null stands for what was not measured."""
    return {
        "calls": len(recording.calls),
        "errors": recording.errors,
        "kept_up": kept_up(recording),
        "per_second": recording.per_second,
        "server_cpu_ms": finite(recording.server_cpu_ms),
        "users_found": finite(recording.users.share_found),
        "quantiles_ms": [[one, finite(recording.latency_ms(one))] for one in QUANTILES],
    }


def finite(value: float) -> float | None:
    """Null for what JSON cannot hold."""
    return value if np.isfinite(value) else None
