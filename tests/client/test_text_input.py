"""The client's requests to a model whose only input is text, on the real server.

The model answers with the length and a hash of each text, so that a score shows which bytes
arrived. Its signatures differ only in how they declare their input.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tensorflow as tf
from click.testing import CliRunner
from colcast.client import InputError, RankingClient, SchemaError, text_cli
from colcast.loadtest.send.formats import encode, signature_for
from colcast.loadtest.send.generated import generated
from colcast.server import ServerProcess
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import predict_pb2

TEXTS = ["a fine film", "Łódź", ""]
ROWS = [{"text": text} for text in TEXTS]
FORMS = {
    "rows": ROWS,
    "columns": {"text": TEXTS},
    "an array": {"text": np.array(TEXTS)},
    "pandas": pd.DataFrame(ROWS),
    "pyarrow": pa.Table.from_pylist(ROWS),
}
REGRESS = "tensorflow/serving/regress"


def scored(texts: Any) -> dict[str, Any]:
    flat = tf.reshape(texts, [-1])
    length = tf.cast(tf.strings.length(flat), tf.int64)
    return {
        "scores": tf.cast(tf.strings.to_hash_bucket_fast(flat, 1000) + 1000 * length, tf.float32)
    }


def parsed(examples: Any) -> dict[str, Any]:
    features = tf.io.parse_example(examples, {"text": tf.io.FixedLenFeature([], tf.string)})
    return scored(features["text"])


def takes(function: Any, name: str, *inner: int) -> Any:
    spec = tf.TensorSpec([None, *inner], tf.string, name)
    return tf.function(function).get_concrete_function(spec)


def save(path: Path, **signatures: Any) -> None:
    """Saves a model; its signature `regress`, if there is one, gets the method name of Regress."""
    tf.saved_model.save(tf.Module(), str(path / "1"), signatures)
    file = path / "1" / "saved_model.pb"
    model = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    if "regress" in signatures:
        model.meta_graphs[0].signature_def["regress"].method_name = REGRESS
    file.write_bytes(model.SerializeToString())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    path = tmp_path_factory.mktemp("reviews")
    save(
        path,
        serving_default=takes(scored, "text"),
        matrix=takes(scored, "text", 1),
        regress=takes(parsed, "text"),
        named=takes(parsed, "examples"),
        exported=takes(parsed, "text"),
        columnar_exported=takes(scored, "text"),
    )
    with ServerProcess(model_name="reviews", model_base_path=path) as started:
        yield started


def client_of(server: ServerProcess, **settings: Any) -> RankingClient:
    return RankingClient(server.target, "reviews", timeout_seconds=60, **settings)


@pytest.fixture
def client(server: ServerProcess) -> Iterator[RankingClient]:
    with client_of(server) as connected:
        yield connected


def score(*texts: str | bytes) -> list[float]:
    found: list[float] = scored(tf.constant(list(texts)))["scores"].numpy().tolist()
    return found


def sent(request: bytes) -> list[bytes]:
    """The strings of a request's only input."""
    (tensor,) = predict_pb2.PredictRequest.FromString(request).inputs.values()
    values: list[bytes] = tf.make_ndarray(tensor).ravel().tolist()
    return values


def features(request: bytes) -> list[set[str]]:
    """The names of the features in each of the request's tf.Examples."""
    return [set(tf.train.Example.FromString(value).features.feature) for value in sent(request)]


@pytest.mark.parametrize("form", FORMS)
def test_texts_under_the_inputs_name_are_what_the_model_scores(
    client: RankingClient, form: str
) -> None:
    assert client.rank(items=FORMS[form]).scores.tolist() == score(*TEXTS)
    assert client.rank(items=client.prepare(FORMS[form])).scores.tolist() == score(*TEXTS)


def test_equal_texts_are_a_row_each(client: RankingClient) -> None:
    assert client.rank(items=ROWS[:1] * 3).scores.tolist() == score(*TEXTS[:1] * 3)
    assert client.rank({"text": "x"}, [{}, {}]).scores.tolist() == score("x", "x")


@pytest.mark.parametrize("target", ["columnar", "stock", "repeated"])
def test_a_target_of_columns_sends_the_texts(client: RankingClient, target: Any) -> None:
    assert sent(client.encode(items=ROWS, target=target)) == [text.encode() for text in TEXTS]


def test_other_features_need_the_target_example(client: RankingClient) -> None:
    with pytest.raises(InputError, match=r"feature 'text': missing.*; given but unused: 'title'"):
        client.encode(items=[{"title": "x"}])
    found = client.encode({"age": 31}, [{"title": "x"}], target="example")
    assert features(found) == [{"age", "title"}]


def test_examples_stay_examples(client: RankingClient) -> None:
    data = sent(client.encode(items=ROWS, target="example"))
    assert features(client.encode(items=ROWS, target="example")) == [{"text"}] * 3
    assert sent(client.encode(examples=data)) == data
    assert client.predict_examples(data).scores.tolist() == score(*data)


@pytest.mark.parametrize("signature", ["regress", "named", "exported"])
def test_a_signature_known_to_parse_examples_gets_them(
    server: ServerProcess, signature: str
) -> None:
    with client_of(server, signature=signature) as client:
        assert client.rank(items=ROWS).scores.tolist() == score(*TEXTS)


def test_the_name_examples_is_known_even_where_a_row_has_it(server: ServerProcess) -> None:
    with client_of(server, signature="named") as client:
        assert features(client.encode(items=[{"examples": "x"}])) == [{"examples"}]


def test_examples_are_no_matrix(server: ServerProcess) -> None:
    with client_of(server, signature="matrix") as client:
        rows = [{"text": [text]} for text in TEXTS]
        assert client.rank(items=rows).scores.tolist() == score(*TEXTS)
        with pytest.raises(SchemaError, match="'matrix' does not take serialized"):
            client.rank(items=rows, target="example")


def test_the_schema_says_which(client: RankingClient) -> None:
    lines = repr(client.schema()).splitlines()
    for name, says in (
        ("serving_default", "text: string"),
        ("named", "examples: serialized tf.Examples"),
    ):
        at = next(i for i, line in enumerate(lines) if line.startswith(name))
        assert lines[at + 1] == f"  {says}"


@pytest.mark.parametrize("signature", [None, "serving_default"])
def test_the_loadtest_sends_texts(server: ServerProcess, signature: str | None) -> None:
    with client_of(server) as client:
        schema = client.schema()
    (data,) = generated(schema, [3], seed=1, signature="serving_default")
    called = signature_for(schema, "columnar", signature)
    with client_of(server, signature=called) as client:
        request = encode(client, "columnar", data)
    assert sent(request.payload) == [text.encode() for text in data.items["text"]]


def test_an_output_that_cannot_be_written_is_reported_before_the_work(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.write_text("one")
    output = tmp_path / "none" / "vectors.npy"
    arguments = [str(texts), "--server", "127.0.0.1:1", "--output", str(output)]
    found = CliRunner().invoke(text_cli.encode, arguments)
    assert found.exit_code == 1
    assert f"Error: [Errno 2] No such file or directory: '{output}'" in found.output
