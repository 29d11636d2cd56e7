"""Rows that repeat are not computed again, in signatures with independent rows."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.zoo.saving import independent_rows, with_defaults, with_record
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow_serving.apis import predict_pb2

from .metrics_page import until_joined
from .servers import NOTHING_KEPT, ONE_WORKER, Stubs

TEXTS = ["send the user once", "", "rank", "rank every candidate"]


class Texts(tf.Module):
    """A model that counts the bytes of texts."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, "texts"),
            tf.TensorSpec([], tf.int32, "longest"),
        ]
    )
    def encode(self, texts: tf.Tensor, longest: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns sizes, cut texts, and `letters`, whose rows are as wide as the longest text."""
        cut = tf.strings.substr(texts, 0, longest)
        sizes = tf.strings.length([texts, cut])
        letters = tf.strings.bytes_split(texts).to_tensor()
        return {
            "sizes": tf.ensure_shape(tf.transpose(sizes), [None, 2]),
            "cut": cut,
            "letters": letters,
        }

    @tf.function(
        input_signature=[
            tf.TensorSpec([1], tf.string, "query"),
            tf.TensorSpec([None], tf.string, "titles"),
        ]
    )
    def rank(self, query: tf.Tensor, titles: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns 1,000 times the bytes of the query plus those of each title."""
        return {"scores": 1000 * tf.strings.length(query) + tf.strings.length(titles)}


def encode(
    stubs: Stubs, texts: Sequence[Any], longest: int | None = None, outputs: Sequence[str] = ()
) -> dict[str, Any]:
    """Calls `encode`; by default asks for the outputs whose rows all have one shape."""
    answer = stubs.prediction.Predict(request_of(stubs, texts, longest, outputs), timeout=120)
    return {name: tf.make_ndarray(proto).tolist() for name, proto in answer.outputs.items()}


def request_of(
    stubs: Stubs, texts: Sequence[Any], longest: int | None = None, outputs: Sequence[str] = ()
) -> predict_pb2.PredictRequest:
    inputs: dict[str, Any] = {"texts": np.array(texts, object)}
    if longest is not None:
        inputs["longest"] = np.int32(longest)
    wanted = outputs or ["sizes", "cut"]
    return stubs.request(inputs, signature_name="encode", output_filter=wanted)


@pytest.fixture(scope="module", name="serve")
def _serve(tmp_path_factory: pytest.TempPathFactory, serve: Any) -> Callable[..., Stubs]:
    base, module = tmp_path_factory.mktemp("texts"), Texts()
    tf.saved_model.save(
        module, str(base / "1"), signatures={"encode": module.encode, "rank": module.rank}
    )
    with_defaults(base / "1", "encode", {"longest": 3})
    with_record(base / "1", {name: independent_rows(name) for name in ("encode", "rank")})
    return partial(serve, base)


@pytest.fixture(scope="module", name="known")
def _known(serve: Callable[..., Stubs]) -> Stubs:
    return serve()


def expected(texts: Sequence[Any], longest: int) -> dict[str, Any]:
    given = [text.encode() if isinstance(text, str) else text for text in texts]
    cut = [text[:longest] for text in given]
    return {"sizes": [[len(a), len(b)] for a, b in zip(given, cut, strict=True)], "cut": cut}


hostile = st.one_of(
    st.sampled_from(TEXTS),
    st.binary(max_size=30),
    st.text(max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.sampled_from([b"\0", b"\0\0", b"a\0", b"\xff" * 9, b"x" * 70_000]),
)


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(hostile, min_size=1, max_size=40),
    longest=st.sampled_from([None, 0, 1, 3]),
    outputs=st.sampled_from([["sizes", "cut"], ["cut"], ["sizes"]]),
)
def test_answers_are_the_models_for_known_and_unknown_values(known, texts, longest, outputs):
    answer = expected(texts, 3 if longest is None else longest)
    assert encode(known, texts, longest, outputs) == {name: answer[name] for name in outputs}


@pytest.mark.parametrize("flags", [ONE_WORKER, NOTHING_KEPT])
def test_requests_that_wait_run_together(serve, flags):
    stubs = serve(*flags)
    draw = np.random.default_rng(5)
    asked = []
    for number in range(300):
        texts = [f"{number} {'x' * draw.integers(20)}" for _ in range(draw.integers(1, 5))]
        asked.append((texts, draw.choice([None, None, None, 2])))
    requests = [request_of(stubs, *each) for each in asked]

    def ask() -> None:
        calls = [stubs.prediction.Predict.future(request, timeout=120) for request in requests]
        for call, (texts, longest) in zip(calls, asked, strict=True):
            outputs = call.result().outputs
            want = expected(texts, 3 if longest is None else longest)
            assert tf.make_ndarray(outputs["sizes"]).tolist() == want["sizes"]
            assert tf.make_ndarray(outputs["cut"]).tolist() == want["cut"]

    until_joined(ask, stubs, "encode")
