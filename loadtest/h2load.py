"""A closed loop of h2load's: it leaves the cores to the server.

A client in Python takes as much processor time per call as a server that joins requests. h2load
(nghttp2, Debian's nghttp2-client) takes a tenth of that. It sends one request again and again and
knows nothing of gRPC, so a process is started per request and the answers are counted by size.
"""

import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from colcast.loadtest.connection import Connection, Request
from colcast.loadtest.recording import Call, Recording

_PROGRAM = "h2load"
_FRAME = 5  # bytes before a gRPC message: whether it is compressed, and how long it is
_PATIENCE_SECONDS = 30  # beyond the time it is told to take
_HEADERS = ("content-type: application/grpc", "te: trailers")


def is_installed() -> bool:
    """Whether the program is found."""
    return shutil.which(_PROGRAM) is not None


def closed_loop(
    target: str, requests: Sequence[Request], clients_each: int, seconds: int
) -> Recording:
    """So many clients per request, each of which sends it again when it has been answered.

    Args:
      target: HOST:PORT, without TLS.
      requests: at least one, of one method and all with answers of the same size.
      clients_each: per request.
      seconds: how long, a whole number.

    Raises:
      ValueError: an answer that is not OK, or not of the size of the others, or none.
      OSError: h2load cannot be started.
      RuntimeError: h2load failed; the message has its words.
      subprocess.TimeoutExpired: it does not end.
    """
    size = _answer_size(target, requests)
    with TemporaryDirectory() as name, ExitStack() as stack:
        began = time.time()
        running = [
            stack.enter_context(
                _start(target, request, Path(name) / str(number), clients_each, seconds)
            )
            for number, request in enumerate(requests)
        ]
        recording = Recording(wall_seconds=float(seconds))
        for number, (process, request) in enumerate(zip(running, requests, strict=True)):
            printed, complaint = process.communicate(timeout=seconds + _PATIENCE_SECONDS)
            if process.returncode != 0:
                raise RuntimeError(f"{_PROGRAM}: {complaint.strip()}")
            calls = _calls(Path(name) / f"{number}.log", request, size, began)
            _check(printed, len(calls), size, clients_each)
            recording.calls += calls
    return recording


def _answer_size(target: str, requests: Sequence[Request]) -> int:
    sizes = set()
    with Connection(target) as connection:
        for request in requests:
            answer = connection.call(request)
            if answer.code != "OK":
                raise ValueError(f"{answer.code}: {answer.message}")
            sizes.add(len(answer.response))
    if len(sizes) > 1:
        raise ValueError(f"answers of {sorted(sizes)} bytes: they are to be of one size")
    return sizes.pop()


def _start(
    target: str, request: Request, path: Path, clients: int, seconds: int
) -> "subprocess.Popen[str]":
    path.write_bytes(b"\0" + len(request.payload).to_bytes(4, "big") + request.payload)
    command = [_PROGRAM, f"--clients={clients}", "--max-concurrent-streams=1"]
    command += [f"--duration={seconds}", f"--data={path}", f"--log-file={path}.log"]
    for header in _HEADERS:
        command += ["--header", header]
    return subprocess.Popen(
        [*command, f"http://{target}{request.method}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _calls(log: Path, request: Request, size: int, began: float) -> list[Call]:
    """A line of the log is when it was sent, its HTTP status and its latency, in microseconds."""
    calls = []
    for line in log.read_text().splitlines():
        sent, status, latency = (int(word) for word in line.split())
        at = sent / 1e6 - began
        code = "OK" if status == 200 else f"HTTP {status}"
        calls.append(
            Call(at, at, at + latency / 1e6, code, request.rows, len(request.payload), size)
        )
    return calls


def _check(printed: str, calls: int, size: int, clients: int) -> None:
    """An error of gRPC's has status 200, too, but no message.

    The last answer of each client may have come without its end: it is no call yet.
    """
    lost = re.search(r"(\d+) failed, (\d+) errored, (\d+) timeout", printed)
    received = re.search(r"\((\d+)\) data", printed)
    if lost is None or received is None:
        raise RuntimeError(f"{_PROGRAM} has not said what it did: {printed.strip()}")
    if any(int(count) for count in lost.groups()) or not calls:
        raise ValueError(f"{calls} answers; {lost[0]}")
    data = int(received[1])
    if not 0 <= data - calls * (_FRAME + size) <= clients * (_FRAME + size):
        raise ValueError(
            f"{calls} answers are {data} bytes, not {_FRAME + size} each: some are errors"
        )
