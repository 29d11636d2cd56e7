"""Measures the CPU time and memory of a server, by its process or by its metrics page."""

import time
from pathlib import Path
from typing import Protocol
from urllib.error import URLError
from urllib.request import urlopen

import psutil  # type: ignore[import-untyped]


class Meter(Protocol):
    """Measures a server's CPU time and memory."""

    def cpu_seconds(self) -> float:
        """The user and system time of all the server's threads, including finished ones."""

    def memory_bytes(self) -> int:
        """The server's current resident memory."""


class ProcessMeter:
    """Reads the CPU time and the memory of another process on this machine."""

    def __init__(self, pid: int, address: str = "") -> None:
        """Measures the process `pid`.

        Args:
          pid: the process id.
          address: HOST:PORT of the server, for the message if it ends while it is measured.

        Raises:
          ProcessLookupError: there is no such process.
        """
        self._pid = pid
        self._gone = f"no process {pid} to measure"
        # Linux's clock id for the CPU time of another process, computed as in
        # clock_getcpuclockid(3). It counts nanoseconds, while /proc/PID/stat counts hundredths of a
        # second.
        self._clock = (~pid << 3) | 2
        self.cpu_seconds()
        if address:
            self._gone = f"the server at {address} (process {pid}) ended during the test"

    def cpu_seconds(self) -> float:
        """The user and system time of all the server's threads, including finished ones."""
        try:
            return time.clock_gettime(self._clock)
        except OSError as error:
            raise ProcessLookupError(self._gone) from error

    def memory_bytes(self) -> int:
        return self._status("VmRSS")

    def forget_peak(self) -> None:
        """Resets the peak of resident memory."""
        Path(f"/proc/{self._pid}/clear_refs").write_text("5")

    def peak_memory_bytes(self) -> int:
        """The peak of resident memory since `forget_peak`."""
        return self._status("VmHWM")

    def _status(self, key: str) -> int:
        try:
            lines = Path(f"/proc/{self._pid}/status").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError) as error:
            raise ProcessLookupError(self._gone) from error
        for line in lines:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
        # The process has ended, but its parent has not waited for it yet.
        raise ProcessLookupError(self._gone)


def listening_process(address: str) -> int | None:
    """The process on this machine that listens on the port of HOST:PORT; None if there is none."""
    host, _, port = address.rpartition(":")
    if host.strip("[]") not in ("127.0.0.1", "localhost", "::1", "0.0.0.0"):
        return None
    for socket in psutil.net_connections(kind="tcp"):
        if socket.status == psutil.CONN_LISTEN and socket.laddr.port == int(port):
            return int(socket.pid) if socket.pid else None
    return None


# Prometheus client libraries use these names: CPU seconds (user and system), bytes.
_CPU, _MEMORY = "process_cpu_seconds_total", "process_resident_memory_bytes"


class MetricsMeter:
    """Reads the CPU time and the memory of a process from its metrics page."""

    def __init__(self, url: str) -> None:
        """Measures the process that publishes its metrics at `url`.

        Raises:
          LookupError: the page is missing or lacks these metrics.
        """
        self._url = url
        self.cpu_seconds()
        self.memory_bytes()

    def cpu_seconds(self) -> float:
        """The user and system time of all the server's threads."""
        return self._read(_CPU)

    def memory_bytes(self) -> int:
        return int(self._read(_MEMORY))

    def _read(self, metric: str) -> float:
        try:
            with urlopen(self._url, timeout=5) as page:
                text: str = page.read().decode()
        except (URLError, ValueError, OSError) as error:
            raise LookupError(
                f"no metrics at {self._url}: {error}; the server publishes them with "
                "--rest_api_port and --monitoring_config_file"
            ) from error
        for line in text.splitlines():
            name, _, value = line.partition(" ")
            if name == metric:
                return float(value)
        raise LookupError(f"{self._url} does not publish {metric}")


def publishing(folder: Path) -> list[str]:
    """Writes a configuration file; returns flags that make a server publish its metrics."""
    file = folder / "monitoring.config"
    file.write_text("prometheus_config { enable: true }")
    return ["--rest_api_port=-1", f"--monitoring_config_file={file}"]


def meter_of(address: str, metrics: str | None = None, pid: int | None = None) -> Meter | None:
    """Returns a meter for the server at HOST:PORT.

    Args:
      address: the address of its gRPC service.
      metrics: the URL of its metrics page.
      pid: its process id; None for the process that listens on the port, if the host is this
          machine.

    Returns:
      None if neither a page nor a process is known.

    Raises:
      LookupError: the metrics page does not exist.
      ProcessLookupError: the process does not exist.
    """
    if metrics:
        return MetricsMeter(metrics)
    pid = listening_process(address) if pid is None else pid
    return None if pid is None else ProcessMeter(pid, address)
