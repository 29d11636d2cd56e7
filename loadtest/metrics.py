"""What a server on another machine has used so far, by the Prometheus metrics it publishes."""

from urllib.error import URLError
from urllib.request import urlopen

# As Prometheus client libraries name them: seconds of user and system time, bytes.
_CPU, _MEMORY = "process_cpu_seconds_total", "process_resident_memory_bytes"


class MetricsMeter:
    """Reads the CPU time and the memory of a process from its metrics page."""

    def __init__(self, url: str) -> None:
        """Measures the process that publishes `url`.

        Raises:
          LookupError: the page is not there or does not tell.
        """
        self._url = url
        self.cpu_seconds()
        self.memory_bytes()

    def cpu_seconds(self) -> float:
        """User and system time of all its threads."""
        return self._read(_CPU)

    def memory_bytes(self) -> int:
        """Resident memory now."""
        return int(self._read(_MEMORY))

    def _read(self, metric: str) -> float:
        try:
            with urlopen(self._url, timeout=5) as page:
                lines = page.read().decode().splitlines()
        except (URLError, ValueError, OSError) as error:
            raise LookupError(f"no metrics at {self._url}: {error}") from error
        for line in lines:
            name, _, value = line.partition(" ")
            if name == metric:
                return float(value)
        raise LookupError(f"{self._url} does not publish {metric}")
