"""Tables whose rows are summed as lists are mapped; scores and errors are TensorFlow's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf

from ..models import summed_tables
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
