"""What a process on this machine has used so far."""

import time
from pathlib import Path
from typing import Protocol

import psutil  # type: ignore[import-untyped]


class Meter(Protocol):
    """Tells what a server has used so far."""

    def cpu_seconds(self) -> float:
        """User and system time of all its threads, the finished ones too."""

    def memory_bytes(self) -> int:
        """Resident memory now."""


class ProcessMeter:
    """Reads the CPU time and the memory of another process of this machine."""

    def __init__(self, pid: int) -> None:
        """Measures the process `pid`.

        Raises:
          ProcessLookupError: there is no such process.
        """
        self._pid = pid
        # Linux's clock id of another process's CPU time, as clock_getcpuclockid(3) makes it. It
        # counts nanoseconds where /proc/PID/stat counts hundredths of a second.
        self._clock = (~pid << 3) | 2
        self.cpu_seconds()

    def cpu_seconds(self) -> float:
        """User and system time of all its threads, the finished ones too."""
        try:
            return time.clock_gettime(self._clock)
        except OSError as error:
            raise ProcessLookupError(f"no process {self._pid} to measure") from error

    def memory_bytes(self) -> int:
        """Resident memory now."""
        return self._status("VmRSS")

    def peak_memory_bytes(self) -> int:
        """The most resident memory it has had."""
        return self._status("VmHWM")

    def _status(self, key: str) -> int:
        try:
            lines = Path(f"/proc/{self._pid}/status").read_text().splitlines()
        except FileNotFoundError as error:
            raise ProcessLookupError(f"no process {self._pid} to measure") from error
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key + ":"))


def listening_process(address: str) -> int | None:
    """The process of this machine that listens on the port of HOST:PORT, None if there is none."""
    host, _, port = address.rpartition(":")
    if host.strip("[]") not in ("127.0.0.1", "localhost", "::1", "0.0.0.0"):
        return None
    for socket in psutil.net_connections(kind="tcp"):
        if socket.status == psutil.CONN_LISTEN and socket.laddr.port == int(port):
            return int(socket.pid) if socket.pid else None
    return None
