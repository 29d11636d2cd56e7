"""Sends on a schedule that does not wait for answers, as independent users do.

Clients that wait for their answer send less the slower a server gets, and so hide its overload.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from colcast.client import Tls
from colcast.loadtest.measure.interrupts import run_until_interrupted
from colcast.loadtest.measure.meters import Meter
from colcast.loadtest.measure.recording import Recording, Sample, percentile_ms
from colcast.loadtest.send.connection import Answer, Request, open_channel
from colcast.loadtest.send.schedule import Schedule

LATE_MS = 5.0  # the generator keeps up while 99 % of its sends are less late than this


@dataclass(frozen=True)
class OpenLoop:
    """How to send.

    Attributes:
      target: HOST:PORT.
      connections: calls take them in turn.
      timeout_seconds: of a call, from the time it is sent.
      keep_every: every how many calls one answer is kept as a sample; 0 keeps none.
      tls: None is plain text.
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
          requests: what the schedule chooses from.
          schedule: when to send which.
          meter: of the server, if it can be measured.

        Raises:
          KeyboardInterrupt: SIGINT or SIGTERM came meanwhile.
        """
        return run_until_interrupted(self._run(requests, schedule, meter))

    async def _run(
        self,
        requests: Sequence[Request],
        schedule: Schedule,
        meter: Meter | None,
    ) -> Recording:
        channels = [open_channel(grpc.aio, self.target, self.tls) for _ in range(self.connections)]
        try:
            await asyncio.gather(*(_connect(channel) for channel in channels))
            cpu = meter.cpu_seconds() if meter else 0.0
            recording = await self._send(channels, requests, schedule)
            if meter:
                recording.server_cpu_seconds = meter.cpu_seconds() - cpu
            return recording
        finally:
            for channel in channels:
                await channel.close(None)

    async def _send(
        self,
        channels: Sequence[Any],
        requests: Sequence[Request],
        schedule: Schedule,
    ) -> Recording:
        methods = {
            name: [channel.unary_unary(name) for channel in channels]
            for name in {request.method for request in requests}
        }
        recording = Recording()
        began = time.perf_counter()

        async def call(number: int, due: float, which: int) -> None:
            request = requests[which]
            method = methods[request.method][number % len(channels)]
            answer = await _call(method, request, self.timeout_seconds)
            recording.add(request, answer, began, due)
            if self.keep_every and number % self.keep_every == 0 and answer.code == "OK":
                recording.samples.append(Sample(which, answer.response))

        under_way = []
        for number, (due, which) in enumerate(
            zip(schedule.due.tolist(), schedule.request.tolist(), strict=True)
        ):
            wait = began + due - time.perf_counter()
            if wait > 0 or number % 16 == 0:  # when behind, still receive answers
                await asyncio.sleep(max(wait, 0))
            under_way.append(asyncio.create_task(call(number, due, which)))
        await asyncio.gather(*under_way)
        recording.wall_seconds = time.perf_counter() - began
        return recording


def kept_up(recording: Recording) -> bool:
    """Whether the generator sent on time; otherwise the figures measure the generator."""
    return not percentile_ms(recording.lateness, 99) > LATE_MS


async def _connect(channel: Any) -> None:
    try:
        await asyncio.wait_for(channel.channel_ready(), timeout=5)
    except asyncio.TimeoutError:
        return  # the calls will report it


async def _call(method: Any, request: Request, timeout: float) -> Answer:
    sent_at = time.perf_counter()
    try:
        response = await method(request.payload, timeout=timeout)
        return Answer("OK", response, "", sent_at, time.perf_counter())
    except grpc.aio.AioRpcError as error:
        answered_at = time.perf_counter()
        return Answer(error.code().name, b"", error.details() or "", sent_at, answered_at)
