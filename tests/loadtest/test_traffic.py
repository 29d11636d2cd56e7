"""Sources of requests: recordings and signatures."""

import struct
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from colcast.client import ModelSchema, RankingClient, SchemaError, Signature, TensorSpec
from colcast.client.columns._dtypes import BY_NAME
from colcast.client.tfrecord import _masked_crc32c, read_records
from colcast.loadtest.send.formats import FORMATS, RequestData, encode, signature_for
from colcast.loadtest.send.generated import generated
from colcast.loadtest.send.traffic import recorded_examples, recorded_requests
from colcast.zoo.examples import serialize
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2


def write(path: Path, records: Iterable[bytes]) -> Path:
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    return path


def predict_request(**inputs: object) -> bytes:
    request = predict_pb2.PredictRequest()
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return bytes(request.SerializeToString())


@pytest.mark.parametrize("damage", ["text", "cut off", "gzip"])
def test_a_damaged_file_is_named_with_the_place(tmp_path: Path, damage: str):
    path = write(tmp_path / "r", [b"first", b"second"])
    if damage == "text":
        path.write_text("user_id,movie_id\n1,2\n")
    elif damage == "cut off":
        path.write_bytes(path.read_bytes()[:-3])
    else:
        options = tf.io.TFRecordOptions(compression_type="GZIP")
        with tf.io.TFRecordWriter(str(path), options) as writer:
            writer.write(b"x" * 1000)
    with pytest.raises(ValueError, match=rf"{path} .*at byte \d+"):
        list(read_records(path))


@pytest.mark.parametrize("length", [1 << 40, 1 << 62, (1 << 64) - 1])
def test_a_record_with_an_absurd_length_is_named(tmp_path: Path, length: int):
    path = claiming(write(tmp_path / "r", [b"first"]), length)
    found = read_records(path)
    assert next(found) == b"first"
    with pytest.raises(ValueError, match=f"within the record of {length} bytes at byte 21"):
        next(found)


def claiming(path: Path, length: int) -> Path:
    """Adds a record that claims to be longer than it is, with a correct checksum of the length."""
    header = struct.pack("<Q", length)
    checksum = struct.pack("<I", _masked_crc32c(header))
    path.write_bytes(path.read_bytes() + header + checksum + b"few")
    return path


def test_neighbouring_examples_of_one_request_are_one_request(tmp_path: Path):
    examples = [serialize({"id": request, "x": n}) for n, request in enumerate("aabccc")]
    found = recorded_examples(write(tmp_path / "r", examples), "id", limit=10)
    assert [request.rows for request in found] == [2, 1, 3]
    assert [one for request in found for one in request.examples] == examples


def test_an_example_without_the_request_id_is_named(tmp_path: Path):
    path = write(tmp_path / "r", [serialize({"id": 1}), serialize({"x": 1})])
    with pytest.raises(ValueError, match="record 1: no feature 'id' to identify the request"):
        recorded_examples(path, "id", limit=5)


def test_a_record_that_is_no_example_is_named(tmp_path: Path):
    path = write(tmp_path / "r", [b"\xff\xff\xff"])
    with pytest.raises(ValueError, match=r"record 0: not a tf\.Example"):
        recorded_examples(path, "id", limit=5)


def test_recorded_requests_of_examples_can_be_sent_in_every_format(tmp_path: Path):
    recorded = predict_request(examples=[b"a", b"b", b"c"])
    (found,) = recorded_requests(write(tmp_path / "r", [recorded]), limit=5)
    assert (found.rows, found.examples, found.recorded) == (3, [b"a", b"b", b"c"], recorded)


def test_one_row_columns_of_a_recorded_request_are_the_users(tmp_path: Path):
    recorded = predict_request(age=np.array([31]), movie=np.array([7, 8]))
    (found,) = recorded_requests(write(tmp_path / "r", [recorded]), limit=5)
    assert (found.rows, found.user) == (2, {"age": 31})
    assert found.items["movie"].tolist() == [7, 8]


@pytest.mark.parametrize(
    ("columns", "rows", "reason"),
    [
        ({"age": [31, 20], "movie": [7, 8, 9], "row_to_user": [0, 0, 1]}, 3, "several users"),
        ({"age": [31, 20], "movie": [7, 8], "row_to_user": [1, 0]}, 2, "several users"),
        ({"age": [31], "movie": np.zeros([0], np.int64)}, 0, "no candidates .*'movie' has 0 rows"),
    ],
)
def test_requests_without_exactly_one_user_are_only_sent_as_recorded(
    tmp_path: Path, columns, rows: int, reason: str
):
    recorded = predict_request(**columns)
    (found,) = recorded_requests(write(tmp_path / "r", [recorded]), limit=5)
    assert found.rows == rows
    with RankingClient("127.0.0.1:1", "m") as client:
        assert encode(client, "recorded", found).payload == recorded
        for name in FORMATS.keys() - {"recorded"}:
            with pytest.raises(ValueError, match=f"a recorded request has {reason}"):
                encode(client, name, found)


def test_rows_of_a_recorded_column_end_where_its_lengths_say(tmp_path: Path):
    recorded = predict_request(
        **{
            "liked": np.array([[5, 6, 0]]),
            "liked/length": np.array([2]),
            "tags": np.array([[b"a", b""], [b"b", b"c"]]),
            "tags/length": np.array([1, 2]),
        }
    )
    (found,) = recorded_requests(write(tmp_path / "r", [recorded]), limit=5)
    assert found.user["liked"].tolist() == [5, 6]
    assert [row.tolist() for row in found.items["tags"]] == [[b"a"], [b"b", b"c"]]
    assert {*found.user, *found.items} == {"liked", "tags"}


def test_a_servers_log_of_requests_holds_requests(tmp_path: Path):
    recorded = predict_request(age=np.array([31]), movie=np.array([7, 8]))
    log = prediction_log_pb2.PredictionLog()
    log.log_metadata.timestamp_secs = 1
    log.predict_log.request.ParseFromString(recorded)
    log.predict_log.response.model_spec.name = "m"
    (found,) = recorded_requests(write(tmp_path / "r", [log.SerializeToString()]), limit=5)
    assert predict_pb2.PredictRequest.FromString(found.recorded).inputs.keys() == {"age", "movie"}
    assert found.user == {"age": 31}


@pytest.mark.parametrize(("record", "reason"), [(b"\xff", "not a valid"), (b"", "no inputs")])
def test_a_record_that_is_no_request_is_named(tmp_path: Path, record: bytes, reason: str):
    with pytest.raises(ValueError, match=f"record 0: no PredictRequest: .*{reason}"):
        recorded_requests(write(tmp_path / "r", [record]), limit=5)


def schema(late: bool = True) -> ModelSchema:
    def signature(name: str, user_rows: int | None) -> Signature:
        declared = {
            "user_age": ("int64", (user_rows,)),
            "user_liked": ("int64", (user_rows, None)),
            "user_liked/length": ("int64", (user_rows,)),
            "item_name": ("string", (None,)),
            "item_flags": ("bool", (None, 3)),
            "item_vector": ("float32", (None, 2)),
        }
        inputs = {n: TensorSpec(n, BY_NAME[dtype], shape) for n, (dtype, shape) in declared.items()}
        return Signature(name, inputs, {}, {})

    names = {"columnar": None} | ({"columnar_late": 1} if late else {})
    return ModelSchema("m", 1, {name: signature(name, rows) for name, rows in names.items()})


def test_generated_values_fit_the_signature():
    (request,) = generated(schema(), [4], seed=1)
    assert request.rows == 4
    assert request.user.keys() == {"user_age", "user_liked"}
    assert isinstance(request.user["user_age"], int)
    assert all(isinstance(name, str) for name in request.items["item_name"])
    assert np.shape(request.items["item_flags"]) == (4, 3)
    assert np.shape(request.items["item_vector"]) == (4, 2)


def test_generated_values_for_any_signature():
    declared = {"user_x": ("int32", (None, 2)), "y": ("float64", (None,)), "t": ("float32", (2,))}
    inputs = {n: TensorSpec(n, BY_NAME[dtype], shape) for n, (dtype, shape) in declared.items()}
    plain = ModelSchema("m", 1, {"rank": Signature("rank", inputs, {}, {})})
    (request,) = generated(plain, [4], seed=1, user_patterns=["user_*"], signature="rank", ids=3)
    assert max(request.user["user_x"]) < 3
    assert np.shape(request.user["user_x"]) == (2,)
    assert np.shape(request.user["t"]) == (2,)
    assert np.shape(request.items["y"]) == (4,)
    with pytest.raises(SchemaError, match="no signature 'other'; it has rank"):
        generated(plain, [4], seed=1, signature="other")


@pytest.mark.parametrize(
    ("format_name", "signature", "called"),
    [
        ("repeated", "serving_default", "serving_default"),
        ("columnar", "serving_default", "serving_default"),
        ("late", "serving_default", None),  # its usual signature, columnar_late
        ("late", "columnar", "columnar_late"),
        ("late", "columnar_late", "columnar_late"),
        ("columnar", "other", "columnar_other"),
        ("example", "other", "other"),
        ("late", "other", "columnar_other_late"),
        ("columnar", None, None),
        ("recorded", "other", None),
    ],
)
def test_a_format_calls_the_signature_made_for_it(format_name, signature, called):
    one = {"x": TensorSpec("x", BY_NAME["float32"], (None,))}
    once = {"x": TensorSpec("x", BY_NAME["float32"], (1,))}
    text = {"examples": TensorSpec("examples", BY_NAME["string"], (None,))}
    inputs = {
        "serving_default": one,
        "columnar": one,
        "columnar_late": once,
        "other": text,
        "columnar_other": one,
        "columnar_other_late": once,
    }
    made = ModelSchema("m", 1, {n: Signature(n, i, {}, {}) for n, i in inputs.items()})
    assert signature_for(made, format_name, signature) == called


@pytest.mark.parametrize(("rows", "bound"), [(50_000, 10_000), (40, 10), (1, 1)])
def test_ids_stay_within_the_smallest_table(rows: int, bound: int):
    def accepts(data: RequestData) -> bool:
        return max(data.user["user_age"], *data.user["user_liked"], 0) < rows

    ages = [one.user["user_age"] for one in generated(schema(), [2] * 200, 1, accepts=accepts)]
    assert bound / 2 <= max(ages) + 1 <= bound


def test_lists_have_one_value_if_the_model_accepts_nothing_else():
    requests = generated(
        schema(), [2] * 20, 1, accepts=lambda data: len(data.user["user_liked"]) == 1
    )
    assert {len(one.user["user_liked"]) for one in requests} == {1}
    assert max(one.user["user_age"] for one in requests) > 1000


def test_a_model_that_refuses_everything_gets_the_usual_values():
    assert generated(schema(), [2], 1, accepts=lambda _: False) == generated(schema(), [2], 1)


def test_generated_requests_repeat_with_the_seed():
    assert generated(schema(), [3, 2], seed=1) == generated(schema(), [3, 2], seed=1)
    assert generated(schema(), [3], seed=1) != generated(schema(), [3], seed=2)


def test_patterns_say_which_features_are_the_users():
    (request,) = generated(schema(late=False), [2], seed=1, user_patterns=["user_a*"])
    assert request.user.keys() == {"user_age"}
    with pytest.raises(
        ValueError, match=r"no feature matches 'u_.*the features are user_age, user_liked"
    ):
        generated(schema(), [2], seed=1, user_patterns=["u_*"])
