"""Tables whose rows are summed as lists are mapped; scores and errors are TensorFlow's."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from colcast.items import build_row_delta

from ..models import summed_tables
from ..waiting import wait_until
from .metrics_page import status
from .servers import AS_SAVED, Stubs

EMPTY, ROWS = summed_tables.EMPTY, summed_tables.ROWS
SAVED = {"saved": summed_tables.save, "partitioned": summed_tables.save_partitioned}
RANDOM = np.random.default_rng(5)


def drawn(rows: int, width: int, empty: float = 0.3) -> dict[str, Any]:
    ids = RANDOM.integers(0, ROWS, size=(rows, width))
    ids[RANDOM.random(ids.shape) < empty] = EMPTY
    return {"ids": ids, "weights": RANDOM.uniform(0.1, 2, size=ids.shape).astype("f4")}


def hostile_weights() -> dict[str, Any]:
    inputs = drawn(6, 8)
    inputs["weights"][::2, ::3] = np.float32([0, -1, np.nan])[:, None]
    return inputs


REQUESTS = {
    "lists": drawn(5, 6),
    "one": drawn(1, 1, 0),
    "of lengths around those that kernels unroll": {
        "ids": np.where(
            np.arange(40) < np.arange(40)[:, None], RANDOM.integers(0, ROWS, 40), EMPTY
        ),
        "weights": RANDOM.uniform(0, 2, size=(40, 40)).astype("f4"),
    },
    "long": drawn(2, 500),
    "one id": {"ids": np.full((3, 50), 7), "weights": np.ones((3, 50), "f4")},
    "empty": drawn(4, 3, 1),
    "no places": drawn(3, 0),
    "no rows": drawn(0, 4),
    "weights": hostile_weights(),
    "negative": {"ids": np.int64([[-1, 2], [3, -7]]), "weights": np.ones((2, 2), "f4")},
    "beyond the end": {"ids": np.int64([[1, 2], [ROWS, 3]]), "weights": np.ones((2, 2), "f4")},
    "far beyond": {"ids": np.int64([[2**62, 2]]), "weights": np.ones((1, 2), "f4")},
}
# More than an op gathers without looking for repeated ids.
HUGE = drawn(8, 40000)


@pytest.fixture(scope="module", params=SAVED, name="version")
def _version(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    version = tmp_path_factory.mktemp(request.param) / "1"
    SAVED[request.param](version)
    return version


@pytest.fixture(scope="module", params=[(), AS_SAVED], name="stubs")
def _stubs(request: pytest.FixtureRequest, version: Path, serve: Callable[..., Stubs]) -> Stubs:
    return serve(version.parent, *request.param)


@pytest.fixture(scope="module", name="original")
def _original(version: Path) -> Any:
    # The loaded object must live as long as its signatures are called.
    loaded = tf.saved_model.load(str(version))
    return {name: (one, loaded) for name, one in loaded.signatures.items()}


def answer_of(original: Any, name: str, inputs: dict[str, Any]) -> Any:
    """The answer in TensorFlow; None if it refuses the request."""
    function, _ = original[name]
    try:
        (answer,) = function(**{key: tf.constant(value) for key, value in inputs.items()}).values()
    except tf.errors.InvalidArgumentError:
        return None
    return answer.numpy()


def tables_of(stubs: Stubs) -> dict[str, str]:
    """The tables on the status page, and why each is in memory; "" for one that is mapped."""
    (model,) = (one for one in status(stubs.server)["models"] if one["name"] == stubs.model)
    (version,) = model["versions"]
    return {one["name"]: one["in_memory_because"] for one in version["tables"]["tables"]}


def test_every_table_is_mapped(stubs: Stubs, original: Any):
    tables = tables_of(stubs)
    assert len(tables) >= len(original)
    assert not any(tables.values()), tables


@pytest.mark.parametrize("request_name", REQUESTS)
def test_scores_have_tensorflows_bits(stubs: Stubs, original: Any, request_name: str):
    inputs = REQUESTS[request_name]
    compare(stubs, original, inputs, list(original))


def test_repeated_ids_of_a_huge_request_are_read_once(stubs: Stubs, original: Any):
    wide = {"fast_sum", "fast_mean", "safe_float64", "div"} & set(original)
    compare(stubs, original, HUGE, sorted(wide))


def compare(stubs: Stubs, original: Any, inputs: dict[str, Any], names: list[str]) -> None:
    for name in names:
        expected = answer_of(original, name, inputs)
        if expected is None:
            with pytest.raises(grpc.RpcError) as error:
                stubs.predict(inputs, signature_name=name)
            assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT, name
            continue
        (got,) = stubs.predict(inputs, signature_name=name).values()
        assert got.shape == expected.shape, name
        assert np.asarray(got).tobytes() == expected.tobytes(), name


def test_an_id_out_of_range_is_named_with_its_table(stubs: Stubs, original: Any):
    inputs = REQUESTS["beyond the end"]
    # The others' ids are refused before they are looked up, or their segments are wrong, too.
    for name in {*original} - {"div", "descending"}:
        with pytest.raises(grpc.RpcError) as error:
            stubs.predict(inputs, signature_name=name)
        details = error.value.details()
        assert " is not in [0, " in details, (name, details)
        assert "{{node " in details, (name, details)


def test_a_request_under_load_reads_one_state_of_its_table(
    tmp_path: Path, serve: Callable[..., Stubs]
):
    """Each delta doubles a table whose rows are all equal, so every bit of an answer is known."""
    base_path = tmp_path / "ranker"
    base_path.mkdir()
    summed_tables.save(base_path / "1", seed=1)
    stubs = serve(base_path)
    inputs = {"ids": np.arange(40).reshape(4, 10), "weights": np.ones((4, 10), np.float32)}

    def publish_all(value: int) -> None:
        for table in ("shared", "in_branch"):
            vectors = np.full((ROWS, 7), value, np.float32).tolist()
            frame = pd.DataFrame({"id": np.arange(ROWS), "vector": vectors})
            build_row_delta(base_path, frame, table=table)

    def applied(number: int) -> None:
        def is_applied() -> bool:
            (model,) = (one for one in status(stubs.server)["models"] if one["name"] == stubs.model)
            return bool(model["versions"][0]["tables"]["deltas"] == number)

        wait_until(is_applied)

    def answer(signature: str) -> Any:
        return stubs.predict(inputs, signature_name=signature)["output_0"]

    publish_all(1)
    applied(2)
    expected = {name: answer(name) for name in ("shared", "in_branch")}
    done = threading.Event()

    def ask(signature: str) -> list[float]:
        factors = []
        while not done.is_set():
            got = answer(signature)
            factors.append(float(got[0, 0] / expected[signature][0, 0]))
            assert got.tobytes() == (expected[signature] * np.float32(factors[-1])).tobytes()
        return factors

    with ThreadPoolExecutor() as pool:
        try:
            asked = [pool.submit(ask, name) for name in (*expected, *expected)]
            for number in (1, 2, 3):
                publish_all(2**number)
                applied(2 + 2 * number)
        finally:
            done.set()
        for one in asked:
            assert one.result() == sorted(one.result())
            assert {*one.result()} <= {1, 2, 4, 8}
    for name in expected:
        assert answer(name).tobytes() == (expected[name] * np.float32(8)).tobytes()
