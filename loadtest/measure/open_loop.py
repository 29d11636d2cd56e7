"""Sends requests on a schedule, without waiting for answers, as independent users do.

Clients that wait for answers send less when a server becomes slow, and so hide its overload.
colcast_sender (server/sender) sends the requests; it is faster than any single server.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import grpc
import numpy as np
import numpy.typing as npt
from colcast.client import Tls
from colcast.loadtest.measure.meters import Meter
from colcast.loadtest.measure.recording import Call, Recording, Sample
from colcast.loadtest.send.connection import Request
from colcast.server import find_sender


@dataclass(frozen=True)
class Schedule:
    """Call i sends `requests[request[i]]` at `due[i]` seconds; `due` is ascending."""

    due: npt.NDArray[np.float64]
    request: npt.NDArray[np.int64]


def poisson(rate: float, seconds: float, distinct: int, seed: int) -> Schedule:
    """A Poisson process. Gaps are exponential, so calls come in bursts, as from independent users.

    Args:
      rate: the mean number of calls per second.
      seconds: the length of the schedule.
      distinct: the number of different requests; each is sent once before any is sent again.
      seed: the random seed.

    Raises:
      ValueError: `rate`, `seconds` or `distinct` is not positive.
    """
    if not (rate > 0 and seconds > 0 and distinct > 0):
        raise ValueError(
            f"rate {rate}/s, {seconds} s and {distinct} requests: all must be positive"
        )
    random = np.random.default_rng(seed)
    due = np.cumsum(random.exponential(1 / rate, int(rate * seconds * 1.5) + 100))
    due = due[due < seconds]
    rounds = -(-len(due) // distinct)
    order = [random.permutation(distinct) for _ in range(rounds)]
    request = np.concatenate(order)[: len(due)] if order else np.array([], np.int64)
    return Schedule(due, request)


LATE_MS = 5.0
_FEWEST_LATE = 10  # with fewer late sends, the generator counts as on time
_CODES = {code.value[0]: code.name for code in grpc.StatusCode}
_RECORD = np.dtype([("sent", "<f8"), ("answered", "<f8"), ("code", "<u4"), ("bytes", "<u4")])


@dataclass(frozen=True)
class OpenLoop:
    """An open-loop load generator.

    Attributes:
      target: HOST:PORT.
      connections: the number of connections; calls use them in turn.
      timeout_seconds: the timeout of a call after it is sent.
      keep_every: the number of calls from one sampled answer to the next; 0 for no samples.
      tls: None for plain text.
    """

    target: str
    connections: int = 8
    timeout_seconds: float = 10.0
    keep_every: int = 0
    tls: Tls | None = None

    def run(
        self,
        requests: Sequence[Request],
        schedule: Schedule,
        *,
        meter: Meter | None = None,
    ) -> Recording:
        """Sends every call of the schedule and waits for the last answer.

        Args:
          requests: the requests that the schedule chooses from, all for one method.
          schedule: when to send which request.
          meter: measures the server, if that is possible.

        Raises:
          RuntimeError: colcast_sender failed; the message is its own.
          colcast.server.ServerNotBuiltError: colcast_sender is not installed.
        """
        pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        with subprocess.Popen([find_sender()], **pipes) as sender:
            try:
                return _run(sender, self._job(requests, schedule), requests, schedule, meter)
            finally:
                sender.kill()

    def _job(self, requests: Sequence[Request], schedule: Schedule) -> bytes:
        """Encodes the job in the form that server/sender/main.cc describes."""
        calls = np.empty(len(schedule.due), [("due", "<f8"), ("request", "<u8")])
        calls["due"], calls["request"] = schedule.due, schedule.request
        texts = [self.target, requests[0].method, *self._tls()]
        numbers = self.connections, round(1000 * self.timeout_seconds), self.keep_every
        parts = [*(_text(text.encode()) for text in texts), *map(_number, numbers)]
        parts.append(_number(len(requests)))
        for request in requests:
            # A gRPC message has a prefix: no compression, and its size.
            prefix = b"\0" + len(request.payload).to_bytes(4, "big")
            parts += [_number(len(prefix) + len(request.payload)), prefix, request.payload]
        return b"".join([*parts, _number(len(calls)), calls.tobytes()])

    def _tls(self) -> tuple[str, str, str, str]:
        if self.tls is None:
            return "", "", "", ""
        name = self.tls.server_name or self.target.rpartition(":")[0].strip("[]")
        files = self.tls.root_certificates, self.tls.private_key, self.tls.certificate_chain
        root, key, chain = (f"{path or ''}" for path in files)
        return name, root, key, chain


def kept_up(recording: Recording, percentile: float = 99) -> bool:
    """Whether the generator sent on time; if not, the percentile measures the generator.

    It may send a few calls late, or half as many as there are calls above the percentile.
    """
    late = recording.lateness * 1000 > LATE_MS
    allowed = len(late) * (100 - percentile) / 200
    return int(late.sum()) <= max(allowed, _FEWEST_LATE - 1)


def _number(value: int) -> bytes:
    return value.to_bytes(8, "little")


def _text(text: bytes) -> bytes:
    return _number(len(text)) + text


def _run(
    sender: Any,
    job: bytes,
    requests: Sequence[Request],
    schedule: Schedule,
    meter: Meter | None,
) -> Recording:
    try:
        sender.stdin.write(job)
        sender.stdin.flush()
    except BrokenPipeError:
        pass  # the sender has ended; its error message is read below
    if not sender.stdout.readline():  # it prints "ready" once it is connected
        raise RuntimeError(sender.stderr.read().decode().strip())
    cpu = meter.cpu_seconds() if meter else 0.0
    sender.stdin.close()  # closing the input starts the run
    outcome = BytesIO(sender.stdout.read())
    if not outcome.getbuffer():
        raise RuntimeError(f"colcast_sender ended: {sender.stderr.read().decode().strip()}")
    cpu_after = meter.cpu_seconds() if meter else 0.0
    recording = _read(outcome, requests, schedule)
    if meter:
        recording.server_cpu_seconds = cpu_after - cpu
    return recording


def _read(outcome: BytesIO, requests: Sequence[Request], schedule: Schedule) -> Recording:
    """Reads the sender's outcome in the form that server/sender/main.cc describes."""
    recording = Recording(wall_seconds=float(np.frombuffer(outcome.read(8), "<f8")[0]))
    calls = np.frombuffer(outcome.read(len(schedule.due) * _RECORD.itemsize), _RECORD)
    asked = [requests[which] for which in schedule.request]
    recording.calls = [
        Call(due, sent, answered, _CODES[code], request.rows, len(request.payload), size)
        for due, request, (sent, answered, code, size) in zip(
            schedule.due.tolist(), asked, calls.tolist(), strict=True
        )
    ]

    def number() -> int:
        return int.from_bytes(outcome.read(8), "little")

    for _ in range(number()):
        which = int(schedule.request[number()])
        recording.samples.append(Sample(which, outcome.read(number())))
    recording.first_error = outcome.read().decode(errors="replace")
    return recording
