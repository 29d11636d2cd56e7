"""What a server tells of itself on its Prometheus page: its CPU time, memory and state caches."""

import re
from collections import defaultdict
from pathlib import Path
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
        for line in _lines(self._url):
            name, _, value = line.partition(" ")
            if name == metric:
                return float(value)
        raise LookupError(f"{self._url} does not publish {metric}")


def publishing(folder: Path) -> list[str]:
    """Flags with which a server publishes its page at `page_of`; writes the file that they name."""
    file = folder / "monitoring.config"
    file.write_text("prometheus_config { enable: true }")
    return ["--rest_api_port=-1", f"--monitoring_config_file={file}"]


def page_of(rest_target: str) -> str:
    """The URL of the page of a server whose HTTP is at HOST:PORT."""
    return f"http://{rest_target}/monitoring/prometheus/metrics"


Counts = dict[tuple[str, str], float]  # (store, metric) -> value


def state_counts(url: str) -> Counts:
    """What the page says of state caches: (store, metric) -> its sum over models and versions.

    The label `store` is `user` or `item`; metrics are as docs/metrics.md names them, like
    `states_found_total`.

    Raises:
      LookupError: the page is not there.
    """
    counts: Counts = defaultdict(float)
    for line in _lines(url):
        if found := _OF_A_STORE.fullmatch(line):
            metric, store, value = found.groups()
            counts[store, metric] += float(value)
    return counts


_OF_A_STORE = re.compile(r':colcast:(states?_?\w*)\{.*\bstore="(\w+)".*\} (\S+)')


def _lines(url: str) -> list[str]:
    try:
        with urlopen(url, timeout=5) as page:
            text: str = page.read().decode()
    except (URLError, ValueError, OSError) as error:
        raise LookupError(
            f"no metrics at {url}: {error}; the server publishes them with --rest_api_port and "
            "--monitoring_config_file"
        ) from error
    return text.splitlines()
