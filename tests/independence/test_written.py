"""Answers while another signature writes, with retrained variables, and for several users."""

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from colcast.client import decode_predict_response, encode_predict_request
from colcast.export import export_saved_model
from colcast.loadtest.measure.meters import publishing
from colcast.server import ServerProcess

from ..models import RANKING, impure
from ..server.metrics_page import Metrics
from ..waiting import wait_until
from .cases import cases_of
from .conftest import ANSWERS, SHORT_SIZES
from .exported import Exported, difference
from .hammer import METHOD, THREADS, available, hammer, serve

EACH = max(40, ANSWERS // (THREADS * 8))  # requests per thread
FLAGS = [["--num_workers=4"], ["--num_workers=4", "--max_piece_milliseconds=0.02"]]
Predict = Callable[[str, dict[str, Any]], dict[str, Any]]


@pytest.fixture(name="serve")
def _serve(tmp_path: Path) -> Callable[..., ServerProcess]:
    def start(
        kind: str, flags: list[str], *, exported: bool = True, **options: Any
    ) -> ServerProcess:
        folder = tmp_path / "ranker/1"
        impure.save(tmp_path / "model" if exported else folder, kind)
        if exported:
            export_saved_model(tmp_path / "model", folder, user_features=["user_*"], **options)
        return ServerProcess("ranker", tmp_path / "ranker", [*publishing(tmp_path), *flags])

    return start


def connected(server: ServerProcess) -> Predict:
    """Opens a separate connection; returns a function that calls a signature."""
    channel = grpc.insecure_channel(server.target, [("grpc.use_local_subchannel_pool", 1)])
    predict = channel.unary_unary(METHOD)

    def ask(signature: str, inputs: dict[str, Any]) -> dict[str, Any]:
        message = encode_predict_request("ranker", signature, inputs)
        return decode_predict_response(predict(message, timeout=60)).outputs  # type: ignore[no-any-return]

    return ask


def by_signature(rows: int, seed: int) -> dict[str, dict[str, Any]]:
    """The same request in every format: signature -> inputs."""
    once = impure.request(rows, seed)
    repeated = {**once, "user_vector": once["user_vector"].repeat(rows, 0)}
    return {"columnar_late": once, "columnar": once, "serving_default": repeated}


def ran_apart(server: ServerProcess) -> bool:
    """Whether the server joined and split no request, and found no state."""
    metrics = ("joined_requests", "divided_requests", "states_found")
    names = {f":colcast:{metric}_total" for metric in metrics}
    return not sum(s.value for s in Metrics(server).samples if s.name in names)


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("unserved", [[], ["set"]])
@pytest.mark.parametrize("kind", ["written_variable", "mutable_table"])
def test_no_answer_is_of_an_earlier_value(
    serve: Callable[..., ServerProcess], kind: str, unserved: list[str], flags: list[str]
) -> None:
    """With `unserved`, the export is told that nothing writes, so rows look independent."""
    written, begun, ended = itertools.count(1), [0], [0]
    with serve(kind, flags, late=True, unserved_signatures=unserved) as server:
        requests = [by_signature(rows, seed) for seed, rows in enumerate((1, 3, 20, 150))]
        ask = connected(server)
        expected = [ask("serving_default", each["serving_default"])["score"] for each in requests]
        done = threading.Event()

        def write() -> None:
            ask = connected(server)
            while not done.is_set():
                begun[0] = next(written)
                ask("set", {"value": np.float32(begun[0])})
                ended[0] = begun[0]

        def read(thread: int) -> list[str]:
            ask, random, wrong = connected(server), np.random.default_rng(thread), []
            for _ in range(EACH):
                number = random.integers(len(requests))
                signature, inputs = [*requests[number].items()][random.integers(3)]
                least = ended[0]
                value = ask(signature, inputs)["score"] - expected[number]
                if not (value > least - 0.5).all() or not (value < begun[0] + 0.5).all():
                    wrong.append(f"{signature}: {value[:3]} of {least} to {begun[0]}")
            return wrong

        with ThreadPoolExecutor(THREADS + 1) as pool:
            writing = pool.submit(write)
            found = [each for some in pool.map(read, range(THREADS)) for each in some]
            done.set()
            writing.result()
        assert found == []
        assert ran_apart(server)


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("exported", [True, False])
def test_a_counter_counts_each_request_once(
    serve: Callable[..., ServerProcess], exported: bool, flags: list[str]
) -> None:
    """Every request runs alone, even without an export and with --enable_batching."""
    more = [] if exported else ["--enable_batching"]
    with serve("counter", [*flags, *more], exported=exported, warmup=[1]) as server:
        requests = by_signature(5, 1)
        del requests["columnar_late"]
        if not exported:
            del requests["columnar"]
        base = connected(server)("serving_default", requests["serving_default"])["score"] - 1

        def read(thread: int) -> list[float]:
            ask, asked = connected(server), [*requests.items()]
            return [float((ask(*asked[n % len(asked)])["score"] - base)[0]) for n in range(EACH)]

        with ThreadPoolExecutor(THREADS) as pool:
            counted = sorted(each for some in pool.map(read, range(THREADS)) for each in some)
        # A run adds to the counter and then reads it; another run may add in between.
        assert (np.array(counted) > np.arange(2, 2 + THREADS * EACH) - 0.3).all()
        assert counted[-1] == pytest.approx(1 + THREADS * EACH, abs=0.3)
        assert ran_apart(server)


# Models whose products the exporter splits, some with interleaved rows or after a normalization.
SPLIT = ("interleaved", "plain_functional", "pointwise", "masked_attention", "sparse_lookups")
REQUESTS = 96


@pytest.mark.parametrize("name", RANKING if ANSWERS else SPLIT)
def test_retrained_variables_score_as_the_retrained_model(
    name: str, exported: Callable[[str], Exported], tmp_path: Path
) -> None:
    before = exported(name)
    after = before.retrained(tmp_path)
    old, new = (cases_of(each, SHORT_SIZES) for each in (before, after))
    assert max(difference(a.expected, b.expected) for a, b in zip(old, new, strict=True)) > 0.01
    server = serve([after], "default", tmp_path / "config", "--file_system_poll_wait_seconds=0.05")
    with server:
        for cases in (old, new):
            found = hammer(server, name, cases, REQUESTS)
            assert {kind: t.shown for kind, t in found.items() if t.wrong} == {}
            if cases is old:
                (tmp_path / "2").rename(after.base_path / "2")
                wait_until(lambda: available(server, name) == ["2"])
