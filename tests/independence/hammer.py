"""Sixteen threads that repeat a model's requests and compare every answer."""

import json
import random
import re
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from colcast.client import decode_predict_response
from colcast.loadtest.measure.meters import publishing
from colcast.server import ServerProcess

from .cases import Case
from .exported import Exported, Outputs, difference

THREADS = 16
IN_FLIGHT = 16  # requests in flight per thread, so that some always wait
_WEIGHTS = {"late": 6, "rest": 2}  # by default, these formats run together and in stages
TOLERANCE = 1e-4  # relative to an output's largest value; wrong answers differ by far more
METHOD = "/tensorflow.serving.PredictionService/Predict"
_OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
_KEEP_BUSY = 32  # number of requests, each of which takes milliseconds


@dataclass
class Tally:
    """The results of one format's requests.

    `inexact` answers differ only in rounding, though the format promises the original's bits.
    `refused` counts errors by code and message; `shown` is the first wrong answer.
    """

    answers: int = 0
    wrong: int = 0
    inexact: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    largest: float = 0.0
    shown: str = ""

    def add(self, case: Case, given: Outputs) -> None:
        self.answers += 1
        apart = difference(case.expected, given)
        self.largest = max(self.largest, apart)
        if apart > TOLERANCE:
            self.wrong += 1
            self.shown = self.shown or f"{_brief(given)}, expected {_brief(case.expected)}"
        elif case.exact and not _same_bits(case.expected, given):
            self.inexact += 1

    def merge(self, other: "Tally") -> None:
        self.answers += other.answers
        self.wrong += other.wrong
        self.inexact += other.inexact
        self.refused += other.refused
        self.largest = max(self.largest, other.largest)
        self.shown = self.shown or other.shown


Tallies = dict[str, Tally]  # format -> tally


def hammer(
    server: ServerProcess, name: str, cases: Sequence[Case], answers: int, seed: int = 0
) -> Tallies:
    """Sends at least `answers` requests, drawn from `cases`, on 16 connections at once."""
    each = -(-answers // THREADS)
    weights = [_WEIGHTS.get(case.format, 1) for case in cases]
    ready = threading.Barrier(THREADS)

    def run(thread: int) -> Tallies:
        draw = random.Random(1000 * seed + thread)
        ready.wait()
        return _send(server, name, draw.choices(cases, weights, k=each))

    found: Tallies = {}
    with ThreadPoolExecutor(THREADS) as pool:
        for tallies in pool.map(run, range(THREADS)):
            for kind, tally in tallies.items():
                found.setdefault(kind, Tally()).merge(tally)
    return found


@contextmanager
def busy(server: ServerProcess, case: Case) -> Iterator[None]:
    """Keeps the workers busy, so that requests sent in the block must wait."""
    with grpc.insecure_channel(server.target, _OPTIONS) as channel:
        predict = channel.unary_unary(METHOD)
        calls = [predict.future(case.message, timeout=120) for _ in range(_KEEP_BUSY)]
        yield
        assert {call.code() for call in calls} == {grpc.StatusCode.OK}


def _send(server: ServerProcess, name: str, chosen: Sequence[Case]) -> Tallies:
    tallies: Tallies = {}
    with grpc.insecure_channel(server.target, _OPTIONS) as channel:
        predict = channel.unary_unary(METHOD)
        for start in range(0, len(chosen), IN_FLIGHT):
            some = chosen[start : start + IN_FLIGHT]
            calls = [
                (case, predict.future(case.message, timeout=120))
                for case in some
                if case.format != "rest"
            ]
            for case in some:
                if case.format == "rest":
                    _rest(server, name, case, tallies.setdefault(case.format, Tally()))
            for case, call in calls:
                tally = tallies.setdefault(case.format, Tally())
                if call.code() is grpc.StatusCode.OK:
                    tally.add(case, decode_predict_response(call.result()).outputs)
                else:
                    tally.refused[_without_address(f"{call.code().name}: {call.details()}")] += 1
    return tallies


def _rest(server: ServerProcess, name: str, case: Case, tally: Tally) -> None:
    url = f"http://{server.rest_target}/v1/models/{name}:predict"
    try:
        with urllib.request.urlopen(url, case.message, timeout=120) as answer:
            outputs = json.load(answer)["outputs"]
    except OSError as error:
        said = error.read().decode() if isinstance(error, urllib.error.HTTPError) else str(error)
        tally.refused[_without_address(said)] += 1
        return
    expected = case.expected
    if not isinstance(outputs, dict) or outputs.keys() != expected.keys():
        outputs = dict.fromkeys(expected, outputs)  # JSON omits the name of a single output
    tally.add(case, {n: np.array(v).astype(expected[n].dtype) for n, v in outputs.items()})


def _without_address(said: str) -> str:
    return re.sub(r"\b127\.0\.0\.1:\d+", "the server", said)[:300]


def _same_bits(expected: Outputs, given: Outputs) -> bool:
    return all(
        value.dtype == object or _bits(value) == _bits(given[name])
        for name, value in expected.items()
    )


def _bits(value: Any) -> bytes:
    """The bytes, with one kind of NaN."""
    if value.dtype.kind == "f":
        value = np.where(np.isnan(value), value.dtype.type(np.nan), value)
    return bytes(value.tobytes())


def _brief(outputs: Outputs) -> str:
    shown = (
        f"{name} {list(np.shape(v))} {np.array2string(np.asarray(v).ravel()[:3], precision=5)}"
        for name, v in outputs.items()
    )
    return "; ".join(shown)


_SPLIT = """
max_batch_size { value: 4096 }
batch_timeout_micros { value: 20000 }
max_enqueued_batches { value: 10000 }
num_batch_threads { value: 4 }
enable_large_batch_splitting { value: true }
max_execution_batch_size { value: 64 }
"""
_JOIN = """
max_batch_size { value: 4096 }
batch_timeout_micros { value: 2000 }
max_enqueued_batches { value: 10000 }
num_batch_threads { value: 1 }
pad_variable_length_inputs: true
"""

VARIANTS = {
    "default": [],
    "one worker": ["--num_workers=1"],
    "split": ["--num_workers=4", "--max_piece_milliseconds=0.02"],
    "exact": ["--graph_optimization=exact"],
    "late examples": ["--num_workers=1", "--example_transcoding=late"],
    "batching": [_JOIN],
    "batching, split": [_SPLIT],
}
"""Name -> flags, or a --batching_parameters_file's text."""


def serve(models: Sequence[Exported], variant: str, folder: Path, *more: str) -> ServerProcess:
    """A server of the models, not yet started; writes its configuration to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = (
        f'config {{ name: "{model.model.name}" base_path: "{model.base_path}"'
        ' model_platform: "tensorflow" }'
        for model in models
    )
    (folder / "models.config").write_text(f"model_config_list {{ {' '.join(entries)} }}")
    mapped = "--map_tables_min_bytes=1"  # test models have small tables
    flags = [f"--model_config_file={folder}/models.config", mapped, *publishing(folder), *more]
    for flag in VARIANTS[variant]:
        if not flag.startswith("--"):
            (folder / "batching.config").write_text(flag)
            flag = f"--batching_parameters_file={folder}/batching.config"
            flags.append("--enable_batching")
        flags.append(flag)
    return ServerProcess(flags=flags)


def available(server: ServerProcess, name: str) -> list[str]:
    """The served versions of a model."""
    with urllib.request.urlopen(f"http://{server.rest_target}/v1/models/{name}") as answer:
        versions = json.load(answer)["model_version_status"]
    return [each["version"] for each in versions if each["state"] == "AVAILABLE"]
