"""Runs a server as a child process, and always stops it."""

import collections
import os
import re
import select
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import IO

from colcast.server._executable import find_executable

# A separate thread of the server writes its log, so a line may appear shortly after its event.
_WRITTEN_WITHIN_SECONDS = 0.2

_READY = re.compile(r'ready: gRPC on ([^\s"]+)(?: and HTTP on ([^\s"]+))?')


class ServerFailedError(RuntimeError):
    """The server exited, or was not ready in time; the message holds the end of its log."""


class ServerProcess:
    """Serves models on a free port of the loopback interface, for tests, demos and benchmarks.

    Use it as a context manager: on entry it waits until the models serve, and on exit it always
    stops the server.

    Args:
      model_name: the model's name in requests.
      model_base_path: the directory with one directory per version. Leave both empty if `flags` has
        a --model_config_file.
      flags: further server flags, such as "--num_workers=1".
      ready_timeout_seconds: how long to wait until the models serve.
      executable: the path of the executable; if empty, `find_executable` searches for it.

    Attributes:
      target: the gRPC address, "127.0.0.1:PORT"; set on entry.
      rest_target: the HTTP address; empty if `flags` has no --rest_api_port.
      pid: the process id; set on entry.
    """

    def __init__(
        self,
        model_name: str = "",
        model_base_path: str | os.PathLike[str] = "",
        flags: Sequence[str] = (),
        ready_timeout_seconds: float = 120,
        executable: str | os.PathLike[str] = "",
    ) -> None:
        self._command = [os.fspath(executable) or str(find_executable())]
        self._command += ["--host=127.0.0.1", "--port=0"]
        if model_name:
            self._command.append(f"--model_name={model_name}")
        if os.fspath(model_base_path):
            self._command.append(f"--model_base_path={os.fspath(model_base_path)}")
        self._command += flags
        self._ready_timeout_seconds = ready_timeout_seconds
        self._lines: collections.deque[str] = collections.deque(maxlen=1000)
        self._unfinished_line = b""
        self._reading = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.target = ""
        self.rest_target = ""
        self.pid = 0

    def __enter__(self) -> "ServerProcess":
        """Starts the server and waits until it serves.

        Raises:
          ServerFailedError: the server did not start.
        """
        self._process = subprocess.Popen(self._command, stderr=subprocess.PIPE)
        self.pid = self._process.pid
        ready = threading.Event()
        self._reader = threading.Thread(target=self._read_log, args=(ready,), daemon=True)
        self._reader.start()
        if not ready.wait(self._ready_timeout_seconds) or not self.target:
            self.kill()
            raise ServerFailedError(f"{' '.join(self._command)}:\n{self.log()}")
        return self

    def __exit__(self, *_: object) -> None:
        """Stops the server with SIGTERM or, if it does not end in time, with SIGKILL."""
        try:
            self.stop()
        except subprocess.TimeoutExpired:
            self.kill()

    def stop(self, timeout_seconds: float = 30) -> int:
        """Stops the server after it has answered requests in flight; returns its exit code."""
        return self._end(signal.SIGTERM, timeout_seconds)

    def kill(self) -> int:
        """Kills the server as a crash would; returns its exit code."""
        return self._end(signal.SIGKILL, None)

    def log(self) -> str:
        """Returns the last thousand lines that the server has logged."""
        until = time.monotonic() + _WRITTEN_WITHIN_SECONDS
        with self._reading:
            while self._readable(max(0, until - time.monotonic())) and self._read_once():
                pass
            return "".join(self._lines)

    def _end(self, how: signal.Signals, timeout_seconds: float | None) -> int:
        assert self._process is not None, "the server was never started"
        self._process.send_signal(how)
        code = self._process.wait(timeout_seconds)
        self._reader.join()
        return code

    def _read_log(self, ready: threading.Event) -> None:
        more = True
        while more:
            self._readable()
            with self._reading:
                more = not self._readable(0) or self._read_once()
            if self.target:
                ready.set()
        with self._reading:
            self._pipe().close()
        ready.set()  # the server has exited, so stop waiting for it

    def _pipe(self) -> IO[bytes]:
        assert self._process is not None, "the server was never started"
        assert self._process.stderr is not None
        return self._process.stderr

    def _readable(self, within_seconds: float | None = None) -> bool:
        """Waits until the pipe has data or has ended; returns False after `within_seconds`."""
        if self._pipe().closed:
            return False
        poll = select.poll()
        poll.register(self._pipe(), select.POLLIN)
        return bool(poll.poll(None if within_seconds is None else 1000 * within_seconds))

    def _read_once(self) -> bool:
        """Reads the lines that are in the pipe; returns False at its end."""
        chunk = os.read(self._pipe().fileno(), 1 << 16)
        *lines, self._unfinished_line = (self._unfinished_line + chunk).split(b"\n")
        if not chunk and self._unfinished_line:
            lines.append(self._unfinished_line)
            self._unfinished_line = b""
        for line in lines:
            text = line.decode(errors="backslashreplace") + "\n"
            self._lines.append(text)
            if found := _READY.search(text):
                self.target, self.rest_target = found[1], found[2] or ""
        return bool(chunk)
