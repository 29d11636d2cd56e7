"""Signatures that no export recorded, served unconverted, against TensorFlow itself.

Where TensorFlow answers a request as it was sent, the server gives the same answer. Where it
refuses the rows, one-row inputs are repeated, unless an input is a part of a sparse or ragged
tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.server import ServerProcess
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

Inputs = dict[str, Any]


@dataclass
class Model:
    """A signature, and whether its one-row inputs may be repeated."""

    specs: dict[str, Any]
    run: Callable[..., dict[str, Any]]
    rows: bool = True
    maker: Callable[[Any], Inputs] | None = None  # draws requests; by default, any row counts
    module: Any = field(default_factory=tf.Module)


def floats(*inner: int | None, first: int | None = None) -> tf.TensorSpec:
    return tf.TensorSpec([first, *inner], tf.float32)


def ints(*inner: int | None) -> tf.TensorSpec:
    return tf.TensorSpec([None, *inner], tf.int64)


WEIGHTS = np.arange(1, 11, dtype=np.float32)[:, None]
TABLE = np.arange(20, dtype=np.float32).reshape(10, 2)


def lookup(ids: Any, table: Any = TABLE) -> Any:
    return tf.gather(tf.constant(table), ids)


def sparse_sum(x: Any, price: Any) -> dict[str, Any]:
    return {"score": tf.sparse.sparse_dense_matmul(x, tf.constant(WEIGHTS)) + price}


def sparse_beside(x: Any, price: Any) -> dict[str, Any]:
    return {"both": tf.concat([tf.sparse.sparse_dense_matmul(x, tf.constant(WEIGHTS)), price], 1)}


def ragged_sum(h: Any, price: Any) -> dict[str, Any]:
    return {"score": tf.reduce_sum(tf.gather(tf.constant(WEIGHTS[:, 0]), h), 1) + price}


def ragged_padded(h: Any, price: Any) -> dict[str, Any]:
    padded = tf.cast(h.to_tensor(), tf.float32)
    return {"both": tf.stack([tf.reduce_sum(padded, 1), price], 1)}


def embedded(x: Any, price: Any) -> dict[str, Any]:
    mean = tf.nn.embedding_lookup_sparse(tf.constant(TABLE), x, None, combiner="mean")
    return {"both": tf.concat([mean, price], 1)}


def by_rowids(ids: Any, rowids: Any, price: Any) -> dict[str, Any]:
    summed = tf.math.unsorted_segment_sum(lookup(ids), rowids, tf.shape(price)[0])
    return {"both": tf.concat([summed, price], 1)}


def counted(user: Any, item: Any) -> dict[str, Any]:
    return {"both": tf.stack([user, item], 1), "calls": COUNTER.assign_add(1)}


COUNTER = tf.Variable(0)
COUNTING = tf.Module()
COUNTING.counter = COUNTER


def draw_sparse(draw: Any) -> Inputs:
    rows = draw(st.integers(1, 4))
    cells = st.sets(st.tuples(st.integers(0, rows - 1), st.integers(0, 9)), max_size=5)
    where = np.array(sorted(draw(cells)), np.int64).reshape(-1, 2)
    prices = draw(st.sampled_from([1, rows]))
    return {
        "x": where,
        "x_1": np.arange(1, len(where) + 1),
        "x_2": np.array([rows, 10]),
        "price": np.arange(prices)[:, None],
    }


def draw_ragged(draw: Any) -> Inputs:
    lengths = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    prices = draw(st.sampled_from([1, len(lengths)]))
    return {
        "h": np.arange(sum(lengths)) % 10,
        "h_1": np.cumsum([0, *lengths]),
        "price": np.arange(prices),
    }


def draw_rowids(draw: Any) -> Inputs:
    ids = draw(st.lists(st.integers(0, 9), max_size=4))
    rows = draw(st.integers(1, 3))
    rowids = sorted(draw(st.integers(0, rows - 1)) for _ in ids)
    return {"ids": ids, "rowids": rowids, "price": np.zeros([rows, 1])}


SPARSE = tf.SparseTensorSpec([None, 10], tf.float32)
SPARSE_IDS = tf.SparseTensorSpec([None, 10], tf.int64)
RAGGED = tf.RaggedTensorSpec([None, None], tf.int64, 1)

MODELS: dict[str, Model] = {
    "beside": Model(
        {"user": floats(2), "item": floats(2)},
        lambda user, item: {"both": tf.concat([user, item], 1), "user_again": user + 0},
    ),
    "broadcast": Model(
        {"user": floats(), "item": floats()},
        lambda user, item: {"score": user * 10 + item, "user_again": user + 0},
    ),
    "thresholds": Model(
        {"x": floats(), "thresholds": floats()},
        lambda x, thresholds: {"above": x[:, None] > thresholds[None, :]},
    ),
    "vocabulary": Model(
        {"ids": ints(), "vocabulary": floats()},
        lambda ids, vocabulary: {"found": tf.gather(vocabulary, ids), "all": vocabulary + 0},
    ),
    "matrix": Model(
        {"x": floats(2), "candidates": floats(2)},
        lambda x, candidates: {"score": tf.matmul(x, candidates, transpose_b=True)},
    ),
    "tiles_by_itself": Model(
        {"user": floats(2), "item": floats(2)},
        lambda user, item: {"both": tf.concat([tf.tile(user, [tf.shape(item)[0], 1]), item], 1)},
    ),
    "first_row": Model(
        {"user": floats(), "item": floats()}, lambda user, item: {"score": user[0] + item}
    ),
    "settings": Model(
        {
            "scale": tf.TensorSpec([], tf.float32),
            "weights": floats(first=2),
            "user": ints(),
            "item": ints(),
        },
        lambda scale, weights, user, item: {
            "score": scale * tf.linalg.matvec(lookup(user) + tf.zeros_like(lookup(item)), weights),
            "both": tf.concat([lookup(user), lookup(item)], 1),
        },
    ),
    "writes": Model({"user": floats(), "item": floats()}, counted, rows=False, module=COUNTING),
    "sparse": Model({"x": SPARSE, "price": floats(1)}, sparse_sum, False, draw_sparse),
    "sparse_beside": Model({"x": SPARSE, "price": floats(1)}, sparse_beside, False, draw_sparse),
    "embedded": Model({"x": SPARSE_IDS, "price": floats(1)}, embedded, False, draw_sparse),
    "ragged": Model({"h": RAGGED, "price": floats()}, ragged_sum, False, draw_ragged),
    "ragged_padded": Model({"h": RAGGED, "price": floats()}, ragged_padded, False, draw_ragged),
    "rowids": Model(
        {"ids": ints(), "rowids": ints(), "price": floats(1)}, by_rowids, False, draw_rowids
    ),
}


def signature_of(model: Model) -> Any:
    specs = list(model.specs.items())

    def run(*given: Any) -> dict[str, Any]:
        return model.run(**{name: value for (name, _), value in zip(specs, given, strict=True)})

    names = ", ".join(model.specs)
    named = eval(f"lambda {names}: run({names})", {"run": run})
    return tf.function(named, input_signature=[spec for _, spec in specs])


@dataclass
class Pair:
    """The server, and the same models in this process."""

    stub: Any
    folder: Path
    loaded: dict[str, Any] = field(default_factory=dict)

    def tensorflow(self, name: str) -> Any:
        """The signature that TensorFlow runs."""
        if name not in self.loaded:
            self.loaded[name] = tf.saved_model.load(str(self.folder / name / "1"))
        return self.loaded[name].signatures["serving_default"]

    def expected(self, name: str, inputs: Inputs) -> dict[str, Any] | None:
        """TensorFlow's answer; None if it refuses."""
        run = self.tensorflow(name)
        try:
            return {key: value.numpy() for key, value in run(**typed(run, inputs)).items()}
        except (tf.errors.InvalidArgumentError, ValueError):
            return None

    def served(self, name: str, inputs: Inputs) -> dict[str, Any] | grpc.RpcError:
        request = predict_pb2.PredictRequest()
        request.model_spec.name = name
        for key, value in typed(self.tensorflow(name), inputs).items():
            request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
        try:
            outputs = self.stub.Predict(request, timeout=60).outputs
        except grpc.RpcError as error:
            return error
        return {key: tf.make_ndarray(value) for key, value in outputs.items()}


def typed(run: Any, inputs: Inputs) -> dict[str, tf.Tensor]:
    specs = run.structured_input_signature[1]
    return {key: tf.constant(value, specs[key].dtype) for key, value in inputs.items()}


@pytest.fixture(scope="module")
def pair(native: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("as_sent")
    configs = []
    for name, model in MODELS.items():
        tf.saved_model.save(model.module, str(folder / name / "1"), signature_of(model))
        entry = f'name: "{name}" base_path: "{folder / name}" model_platform: "tensorflow"'
        configs.append(f"config {{ {entry} }}")
    (folder / "models.config").write_text(f"model_config_list {{ {' '.join(configs)} }}")
    with (
        ServerProcess(flags=[f"--model_config_file={folder / 'models.config'}"]) as server,
        grpc.insecure_channel(server.target) as channel,
    ):
        yield Pair(prediction_service_pb2_grpc.PredictionServiceStub(channel), folder)


def repeated(model: Model, inputs: Inputs) -> Inputs | None:
    """The inputs with single rows repeated; None if some have neither 1 nor N rows."""
    given = {key: np.array(value) for key, value in inputs.items()}
    batched = [
        key for key, spec in model.specs.items() if spec.shape.rank and spec.shape[0] is None
    ]
    rows = max(len(given[key]) for key in batched)
    if any(len(given[key]) not in (1, rows) for key in batched) or rows < 1:
        return None
    return given | {key: np.repeat(given[key], rows, 0) for key in batched if len(given[key]) == 1}


def check(pair: Pair, name: str, inputs: Inputs) -> None:
    expected = pair.expected(name, inputs)
    if expected is None and MODELS[name].rows:
        again = repeated(MODELS[name], inputs)
        expected = pair.expected(name, again) if again is not None and name not in NO_ROWS else None
    answer = pair.served(name, inputs)
    if expected is None:
        assert isinstance(answer, grpc.RpcError), answer
        assert answer.code() is grpc.StatusCode.INVALID_ARGUMENT, answer.details()
        return
    assert not isinstance(answer, grpc.RpcError), answer.details()
    for key, value in expected.items():
        assert answer[key].shape == value.shape, key
        if key != "calls":
            np.testing.assert_array_equal(answer[key], value, key)


# TensorFlow refuses their requests only for values.
NO_ROWS = ("thresholds", "vocabulary", "matrix", "first_row", "tiles_by_itself")


# test_any_rows draws others.
CASES: dict[str, tuple[str, Inputs]] = {
    "a_single_value_stays_single": (
        "sparse",
        {"x": [[1, 0]], "x_1": [1], "x_2": [2, 10], "price": [[0.5], [1]]},
    ),
    "a_feature_sent_once_beside_sparse_rows": (
        "sparse_beside",
        {"x": [[1, 0]], "x_1": [1], "x_2": [2, 10], "price": [[0.5]]},
    ),
    "one_row_ragged": ("ragged", {"h": [1, 2, 3], "h_1": [0, 3], "price": [0.5]}),
    "one_id_in_three_places": (
        "rowids",
        {"ids": [3], "rowids": [0, 0, 1], "price": [[0.5], [1], [2]]},
    ),
    "one_threshold": ("thresholds", {"x": [1, 2, 3], "thresholds": [2]}),
    "a_vocabulary_of_one": ("vocabulary", {"ids": [0, 0, 0], "vocabulary": [7]}),
    "one_candidate_is_not_repeated": ("matrix", {"x": [[1, 2]], "candidates": [[3, 4], [5, 6]]}),
    "what_writes_is_not_repeated": ("writes", {"user": [1], "item": [1, 2]}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_server_answers_as_tensorflow_does(pair: Pair, case: str) -> None:
    name, inputs = CASES[case]
    check(pair, name, inputs)


@pytest.mark.parametrize("name", MODELS)
def test_any_rows(pair: Pair, name: str) -> None:
    @settings(max_examples=60, deadline=None, derandomize=True, database=None)
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        check(pair, name, draw_request(data.draw, name))

    holds()


def draw_request(draw: Any, name: str) -> Inputs:
    model = MODELS[name]
    if model.maker is not None:
        return model.maker(draw)
    inputs: Inputs = {}
    for key, spec in model.specs.items():
        sizes = [draw(st.sampled_from([1, 1, 3, 3, 2, 0])) if n is None else n for n in spec.shape]
        values = np.array([draw(st.integers(0, 3)) for _ in range(int(np.prod(sizes)))])
        shaped = values.reshape(sizes)
        inputs[key] = shaped
    return inputs


def test_an_id_that_is_wrong_is_what_a_repeated_request_is_refused_for(pair: Pair) -> None:
    inputs = {"scale": 1, "weights": [1, 2], "user": [1], "item": [0, 99]}
    answer = pair.served("settings", inputs)
    assert isinstance(answer, grpc.RpcError)
    assert "99 is not in [0, 10)" in answer.details()


def test_a_refused_request_writes_at_most_once(pair: Pair) -> None:
    before = pair.served("writes", {"user": [1], "item": [1]})["calls"]
    for _ in range(3):
        pair.served("writes", {"user": [1], "item": [1, 2]})
    after = pair.served("writes", {"user": [1], "item": [1]})["calls"]
    assert after - before <= 4
