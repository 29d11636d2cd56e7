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

    def __init__(self, pid: int, address: str = "") -> None:
        """Measures the process `pid`.

        Args:
          pid: of the process.
          address: HOST:PORT of the server it is, for the message when it ends while measured.

        Raises:
          ProcessLookupError: there is no such process.
        """
        self._pid = pid
        self._gone = f"no process {pid} to measure"
        # Linux's clock id of another process's CPU time, as clock_getcpuclockid(3) makes it. It
        # counts nanoseconds where /proc/PID/stat counts hundredths of a second.
        self._clock = (~pid << 3) | 2
        self.cpu_seconds()
        if address:
            self._gone = f"the server at {address} (process {pid}) ended during the test"

    def cpu_seconds(self) -> float:
        """User and system time of all its threads, the finished ones too."""
        try:
            return time.clock_gettime(self._clock)
        except OSError as error:
            raise ProcessLookupError(self._gone) from error

    def memory_bytes(self) -> int:
        """Resident memory now."""
        return self._status("VmRSS")

    def forget_peak(self) -> None:
        """Has the peak count from here."""
        Path(f"/proc/{self._pid}/clear_refs").write_text("5")

    def peak_memory_bytes(self) -> int:
        """The most resident memory it has had."""
        return self._status("VmHWM")

    def _status(self, key: str) -> int:
        try:
            lines = Path(f"/proc/{self._pid}/status").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError) as error:
            raise ProcessLookupError(self._gone) from error
        for line in lines:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
        raise ProcessLookupError(self._gone)  # it ended, and its parent has not noticed yet


def listening_process(address: str) -> int | None:
    """The process of this machine that listens on the port of HOST:PORT, None if there is none."""
    host, _, port = address.rpartition(":")
    if host.strip("[]") not in ("127.0.0.1", "localhost", "::1", "0.0.0.0"):
        return None
    for socket in psutil.net_connections(kind="tcp"):
        if socket.status == psutil.CONN_LISTEN and socket.laddr.port == int(port):
            return int(socket.pid) if socket.pid else None
    return None
