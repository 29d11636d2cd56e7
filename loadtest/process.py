"""What a process on this machine has used so far."""

import time
from pathlib import Path


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
