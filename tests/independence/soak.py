"""Twenty minutes of everything at once: `python -m tests.independence.soak --minutes 20`.

Clients send requests in every format and compare each answer with the original model's, while one
model is published again and again, deltas change another one's table, broken versions and
configurations arrive, and rude clients send garbage. Prints the server's resident memory once a
minute. Fails on any wrong or refused answer, if the server ends, and if the median of its memory
grows by more than 2 MB per worker from the second quarter to the last: reloads make memory rise and
fall, so single samples differ by more.
"""

import argparse
import itertools
import random
import shutil
import socket
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pandas as pd
from colcast.items import build_row_delta, build_table
from colcast.items._variables import variables_of
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.server import ServerProcess
from tensorflow_serving.apis import model_management_pb2
from tensorflow_serving.apis import model_service_pb2_grpc as model_grpc

from ..models import RANKING
from ..server.metrics_page import status
from ..waiting import wait_until
from .cases import Case, cases_of, with_wide_list
from .exported import Exported, Outputs, difference
from .hammer import METHOD, TOLERANCE, available, serve
from .test_deltas import KEY, Client, _items

RELOADED, CHANGED = "masked_attention", "plain_functional"
SIZES = (1, 2, 5, 20, 150, 700)
WORKERS, CLIENTS, RUDE = 4, 3, 2
ENDED = threading.Event()
COUNTS: Counter[str] = Counter()
FAILED: list[str] = []


class _Checker(Client):
    """Accepts the answer of any generation; counts errors as failures."""

    def _ask(self, kind: str, case: Case, predict: Any, infer: Any) -> Outputs | None:  # type: ignore[override]
        try:
            return super()._ask(kind, case, predict, infer)
        except Exception as error:  # a soak goes on
            FAILED.append(f"{self.model}, {kind}: {str(error)[:300]}")
            return None

    def _check(self, kind: str, number: int, given: Outputs | None) -> None:
        self.answers[kind] += 1
        expected = [cases[number].expected for cases in self.generations]
        if given is not None and all(difference(one, given) > TOLERANCE for one in expected):
            FAILED.append(f"{self.model}, {kind}: wrong answer to request {number}")


def _every(seconds: float, step: Callable[[int], None]) -> Callable[[], None]:
    def run() -> None:
        for number in itertools.count():
            if ENDED.wait(seconds):
                return
            step(number)

    return run


def _publish(model: Exported) -> Callable[[int], None]:
    """Publishes version 1 again; every third version is broken at first, and then replaced."""

    def step(number: int) -> None:
        done = sorted(int(path.name) for path in model.base_path.iterdir() if path.name.isdigit())
        work, target = model.base_path / "copy", model.base_path / str(done[-1] + 1)
        shutil.copytree(model.base_path / str(done[-1]), work)
        if number % 3 == 2:
            broken = model.base_path / "broken"
            shutil.copytree(work, broken)
            (broken / "saved_model.pb").write_bytes(b"broken")
            broken.rename(target)
            COUNTS["broken versions"] += 1
            ENDED.wait(5)
            shutil.rmtree(target)
            ENDED.wait(2)
        work.rename(target)
        COUNTS["reloads"] += 1
        for version in done[:-1]:
            shutil.rmtree(model.base_path / str(version))

    return step


def _deltas(
    server: ServerProcess, model: Exported
) -> tuple[list[list[Case]], Callable[[int], None]]:
    """The generations of two deltas, and the function that publishes them in turn."""
    original, draw = model.original(), np.random.default_rng(3)
    (served,) = (one for one in status(server)["models"] if one["name"] == CHANGED)
    listed = served["versions"][0]["tables"]["tables"]
    mapped = {one["name"] for one in listed if not one["in_memory_because"]}
    tables = variables_of(model.base_path / "1").values()
    table = next(one for one in tables if one.name in mapped and len(one.shape) == 2)
    rows, width = table.shape
    ids = np.arange(0, rows, 2)
    generations, frames = [cases_of(model, SIZES, original=original)], []
    for _ in range(2):
        vectors = np.float32(draw.normal(size=(len(ids), width)))
        original.assign(table.name, ids, vectors)
        generations.append(cases_of(model, SIZES, original=original))
        frames.append(pd.DataFrame({"id": ids, "vector": list(vectors)}))

    def step(number: int) -> None:
        build_row_delta(model.base_path, frames[number % 2], table=table.name)
        COUNTS["deltas"] += 1

    return generations, step


def _broken_configuration(server: ServerProcess) -> Callable[[int], None]:
    def step(number: int) -> None:
        request = model_management_pb2.ReloadConfigRequest()
        names = (("", "/x"), ("one", ""), ("one", "relative"))[number % 3]
        for _ in range(1 + number % 2):  # the second has the same name
            request.config.model_config_list.config.add(
                name=names[0], base_path=names[1], model_platform="tensorflow"
            )
        with grpc.insecure_channel(server.target) as channel:
            call = model_grpc.ModelServiceStub(channel).HandleReloadConfigRequest.future(
                request, timeout=60
            )
            if call.code() is grpc.StatusCode.OK:
                FAILED.append(f"a broken configuration was accepted: {names}")
        COUNTS["broken configurations"] += 1

    return step


def _rude(server: ServerProcess, good: Case, seed: int) -> Callable[[int], None]:
    """Garbage, hang-ups, tiny deadlines, damaged messages, and a list of a million values."""
    draw = random.Random(seed)

    def send(address: str, data: bytes) -> None:
        host, port = address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=5) as raw:
            raw.sendall(data)

    def call(message: bytes, timeout: float, cancel: bool = False) -> None:
        with grpc.insecure_channel(
            server.target, [("grpc.use_local_subchannel_pool", 1)]
        ) as channel:
            future = channel.unary_unary(METHOD).future(message, timeout=timeout)
            _ = future.cancel() if cancel else future.code()

    def damaged() -> bytes:
        message = bytearray(good.message)
        for _ in range(draw.randint(1, 8)):
            message[draw.randrange(len(message))] = draw.randrange(256)
        return bytes(message)

    http2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    post = f"POST /v1/models/{RELOADED}:predict HTTP/1.1\r\nHost: x\r\n".encode()
    deeds: list[Callable[[], None]] = [
        lambda: send(server.target, draw.randbytes(draw.randint(1, 4000))),
        lambda: send(server.target, http2 + draw.randbytes(200)),
        lambda: send(server.rest_target, post + b"A: " * 9),
        lambda: send(server.rest_target, post + b'Content-Length: 99999999\r\n\r\n{"inputs": ['),
        lambda: send(server.rest_target, draw.randbytes(300)),
        lambda: call(good.message, 0.001),
        lambda: call(good.message, 5, cancel=True),
        lambda: call(damaged(), 5),
        lambda: call(with_wide_list(RELOADED, good, 1 << 20), 5),
    ]

    def step(number: int) -> None:
        try:
            deeds[number % len(deeds)]()
        except OSError:
            COUNTS["hung up on"] += 1
        COUNTS["rude rounds"] += 1

    return step


def _run(server: ServerProcess, minutes: float, tasks: Any, clients: list[_Checker]) -> list[float]:
    """Runs everything; returns the server's resident megabytes, once a minute."""
    meter, memory = ProcessMeter(server.pid, server.target), []
    with ThreadPoolExecutor(len(tasks) + len(clients)) as pool:
        running = [pool.submit(task) for task in tasks]
        running += [pool.submit(c.run, seed, ENDED) for seed, c in enumerate(clients)]
        try:
            began = time.monotonic()
            while time.monotonic() < began + 60 * minutes:
                time.sleep(min(60, 30 * minutes))
                memory.append(meter.memory_bytes() / 1e6)
                answers = sum((client.answers for client in clients), Counter[str]())
                print(
                    f"{(time.monotonic() - began) / 60:.1f} min: {memory[-1]:.1f} MB,"
                    f" {answers.total()} answers, {len(FAILED)} failed, {dict(COUNTS)}",
                    flush=True,
                )
        finally:
            ENDED.set()
        for each in running:
            each.result()
    print(f"answers by format: {dict(answers)}")
    return memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    minutes = parser.parse_args().minutes
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        models = [Exported(RANKING[name], folder / name) for name in (RELOADED, CHANGED)]
        print("exported", flush=True)
        build_table(models[0].base_path, _items(models[0]), key=KEY, output=folder / "items")
        cases = cases_of(models[0], SIZES, item_key=KEY)
        flags = [
            f"--item_table={RELOADED}:{KEY}:{folder}/items",
            "--file_system_poll_wait_seconds=1",
            "--max_num_load_retries=0",
            f"--num_workers={WORKERS}",
        ]
        print("requests made", flush=True)
        with serve(models, "default", folder / "config", *flags) as server:
            generations, delta = _deltas(server, models[1])
            by_model = {RELOADED: [cases], CHANGED: generations}
            good = next(case for case in cases if case.format == "columnar")
            tasks = [
                _every(25, _publish(models[0])),
                _every(3, delta),
                _every(20, _broken_configuration(server)),
                *(_every(0.1, _rude(server, good, seed)) for seed in range(RUDE)),
            ]
            clients = [_Checker(server, *of) for _ in range(CLIENTS) for of in by_model.items()]
            memory = _run(server, minutes, tasks, clients)
            wait_until(lambda: len(available(server, RELOADED)) == 1, 60)
    for said, times in Counter(FAILED).most_common(10):
        print(f"{times} times {said}")
    quarter = len(memory) // 4
    second, last = memory[quarter : 2 * quarter or None], memory[-quarter:]
    grown = statistics.median(last) - statistics.median(second)
    print(f"{len(FAILED)} failed; {grown:+.1f} MB since the second quarter", flush=True)
    raise SystemExit(bool(FAILED) or grown > 2 * WORKERS)


if __name__ == "__main__":
    main()
