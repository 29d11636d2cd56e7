"""What tells a server's CPU time and memory: its metrics page, or its process on this machine."""

from colcast.loadtest.metrics import MetricsMeter
from colcast.loadtest.process import Meter, ProcessMeter, listening_process


def meter_of(address: str, metrics: str | None = None, pid: int | None = None) -> Meter | None:
    """Measures the server at HOST:PORT.

    Args:
      address: of its gRPC service.
      metrics: the URL of its Prometheus page.
      pid: its process; None: the one that listens on the port, if the host is this machine.

    Returns:
      None where neither is known.

    Raises:
      LookupError: the page is not there.
      ProcessLookupError: the process is not.
    """
    if metrics:
        return MetricsMeter(metrics)
    if pid is None:
        pid = listening_process(address)
    return None if pid is None else ProcessMeter(pid, address)
