"""Recorded requests: for the proof, for finding user features, and as warm-up requests."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from colcast.export import ExportError, export_saved_model
from colcast.export.convert._features import Feature, Kind
from colcast.export.report._recorded import read_record
from colcast.export.trials._traffic import read_traffic
from rich.console import Console
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from ..models.examples import PAIRS_MODEL
from .conftest import example, served


def request(*rows: bytes) -> predict_pb2.PredictRequest:
    message = predict_pb2.PredictRequest()
    message.model_spec.name = "model"
    message.inputs["examples"].CopyFrom(tf.make_tensor_proto(list(rows), tf.string))
    return message


def record(file: Path, *messages) -> Path:
    with tf.io.TFRecordWriter(str(file)) as writer:
        for message in messages:
            writer.write(message if isinstance(message, bytes) else message.SerializeToString())
    return file


REQUESTS = [
    request(
        example(user_age=20, user_genres=[b"drama"], movie=1),
        example(user_age=20, user_genres=[b"drama"], movie=2, numbers=[1.0, 2.0]),
    ),
    request(
        example(user_age=70, movie=1, numbers=[1.0, 0.0]),
        example(user_age=70, movie=1, numbers=[3.0, 0.0]),
    ),
]


def request_of_columns(**columns) -> predict_pb2.PredictRequest:
    message = predict_pb2.PredictRequest()
    for name, column in columns.items():
        message.inputs[name.replace("__", "/")].CopyFrom(tf.make_tensor_proto(column))
    return message


def log_of_predict(sent: predict_pb2.PredictRequest) -> prediction_log_pb2.PredictionLog:
    log = prediction_log_pb2.PredictionLog()
    log.predict_log.request.CopyFrom(sent)
    return log


def sides(report) -> dict[str, str]:
    return {feature.name: str(feature.side) for feature in report.signatures[0].features}


USERS = {"user_age": "user", "user_genres": "user", "movie": "item", "numbers": "item"}


@pytest.mark.parametrize(
    "recorded_as", [lambda sent: sent, log_of_predict], ids=["requests", "logs"]
)
def test_features_constant_in_each_request_are_the_users(embedded, tmp_path, recorded_as):
    file = record(tmp_path / "traffic", *map(recorded_as, REQUESTS))
    report = export_saved_model(embedded, tmp_path / "out", user_features=["auto"], examples=file)
    assert sides(report) == USERS
    assert report.signatures[0].parity.recorded_rows == 4


COLUMNS = {
    "user_age": np.array([70]),
    "user_genres": [[b"drama", b""]],
    "user_genres__length": np.array([1]),
    "movie": np.array([1, 2, 3]),
    "numbers": np.array([[1.0, 0.0], [3.0, 0.0], [0.5, 0.25]], np.float32),
}


def test_requests_of_columns_are_the_examples_they_stand_for(tmp_path):
    features = [
        Feature("user_age", Kind.FIXED_LEN, "int64"),
        Feature("user_genres", Kind.VAR_LEN, "string"),
        Feature("movie", Kind.FIXED_LEN, "int64"),
        Feature("numbers", Kind.FIXED_LEN, "float32", (2,), (0.5, -2.0)),
    ]
    user = {"user_age": 70, "user_genres": [b"drama"]}
    rows = zip(COLUMNS["movie"].tolist(), COLUMNS["numbers"].tolist(), strict=True)
    sent = request(*(example(**user, movie=movie, numbers=numbers) for movie, numbers in rows))
    traffic = [
        read_traffic(record(tmp_path / name, message), "examples", features).requests[0]
        for name, message in (("columns", request_of_columns(**COLUMNS)), ("examples", sent))
    ]
    given, expected = (rows.columns() for rows in traffic)
    assert given.keys() == expected.keys()
    for name, column in expected.items():
        np.testing.assert_array_equal(given[name], column)


def test_features_sent_once_are_the_users(embedded, tmp_path):
    log = log_of_predict(request_of_columns(**COLUMNS))
    file = record(tmp_path / "traffic", log, *REQUESTS)
    report = export_saved_model(embedded, tmp_path / "out", user_features=["auto"], examples=file)
    assert sides(report) == USERS
    assert report.signatures[0].parity.recorded_rows == 7


def log_of(kind: str, *rows: bytes) -> prediction_log_pb2.PredictionLog:
    log = prediction_log_pb2.PredictionLog()
    log.log_metadata.model_spec.name = "model"
    log_of_kind = getattr(log, f"{kind}_log")
    log_of_kind.response.SetInParent()
    if kind == "multi_inference":
        log_of_kind.request.tasks.add().model_spec.name = "model"
    else:
        log_of_kind.request.model_spec.name = "model"
    log_of_kind.request.input.example_list.SetInParent()
    for row in rows:
        log_of_kind.request.input.example_list.examples.add().ParseFromString(row)
    return log


FEATURES = [Feature(name, Kind.FIXED_LEN, "int64") for name in ("user_age", "movie")]
USER_AND_MOVIES = {"user_age": [20, 20], "movie": [1, 2]}


@pytest.mark.parametrize("kind", ["classify", "regress", "multi_inference"])
@pytest.mark.parametrize("others", [[], REQUESTS])
def test_logs_of_classify_and_similar_calls_are_requests_of_their_examples(tmp_path, kind, others):
    rows = (example(user_age=20, movie=1), example(user_age=20, movie=2))
    file = record(tmp_path / "traffic", log_of(kind, *rows), *others)
    traffic = read_traffic(file, "examples", FEATURES)
    assert traffic.has_requests
    assert len(traffic.requests) == 1 + len(others)
    columns = traffic.requests[0].columns()
    assert {name: column.tolist() for name, column in columns.items()} == USER_AND_MOVIES


def test_a_logged_context_is_part_of_every_example(tmp_path):
    log = prediction_log_pb2.PredictionLog()
    given = log.classify_log.request.input.example_list_with_context
    given.context.ParseFromString(example(user_age=20))
    for movie in (1, 2):
        given.examples.add().ParseFromString(example(movie=movie))
    (found,) = read_traffic(record(tmp_path / "traffic", log), "examples", FEATURES).requests
    assert {name: c.tolist() for name, c in found.columns().items()} == USER_AND_MOVIES


SEVERAL_USERS = {"user_age": [70, 20], "movie": [1, 2], "row_to_user": np.array([1, 0])}
MORE_ROWS = {"user_age": [70, 20], "movie": [1, 2, 3], "row_to_user": np.array([1, 0, 0])}
PREFETCH = {"user_age": [70], "movie": np.zeros([0], np.int64)}


def test_requests_of_several_users_or_none_are_left_out_and_reported(embedded, tmp_path):
    left_out = [request_of_columns(**columns) for columns in (SEVERAL_USERS, MORE_ROWS, PREFETCH)]
    file = record(tmp_path / "traffic", *left_out, log_of("classify"), request(), *REQUESTS)
    report = export_saved_model(embedded, tmp_path / "out", examples=file)
    assert report.signatures[0].parity.recorded_rows == 4
    assert report.unused_requests == {"of several users": 2, "without candidates": 3}
    console = Console(width=200, record=True)
    report.print(console)
    note = "recorded requests left out: 2 of several users, 3 without candidates"
    assert note in console.export_text()
    assert note in read_record(tmp_path / "out")["notes"]


def test_nothing_but_requests_of_several_users(embedded, tmp_path):
    file = record(tmp_path / "traffic", request_of_columns(**SEVERAL_USERS))
    with pytest.raises(ExportError, match="no request to compare, only 1 of several"):
        export_saved_model(embedded, tmp_path / "out", examples=file)


def test_recorded_rows_that_the_model_refuses_are_left_out_and_reported(embedded, tmp_path):
    rows = [example(movie=i % 50) for i in range(60)]
    file = record(tmp_path / "traffic", *rows[:30], example(movie=50), *rows[30:])
    report = export_saved_model(embedded, tmp_path / "out", examples=file)
    parity = report.signatures[0].parity
    assert (parity.recorded_rows, parity.refused_rows) == (60, 1)
    assert "is not in [0, 50)" in parity.refusal
    console = Console(width=200, record=True)
    report.print(console)
    assert "the model refuses 1 of the recorded rows: " in console.export_text()


def test_single_examples_cannot_tell_users(embedded, tmp_path):
    file = record(tmp_path / "traffic", example(movie=1), example(movie=2))
    with pytest.raises(
        ExportError, match=r"expected recorded PredictRequests.*single tf\.Examples"
    ):
        export_saved_model(embedded, tmp_path / "out", user_features=["auto"], examples=file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([b"\x01nonsense"], "record 0 of .* is not a tf.Example"),
        ([], "has no records"),
        ([request_of_columns(other=[1])], "nor a column.*'other'"),
        (
            [request_of_columns(movie=np.arange(3), user_age=np.arange(2))],
            "'user_age' of the request in record 0 .* has 2 rows, expected 1 or 3",
        ),
        (
            [request_of_columns(movie=[1, 2, 3])],
            r"'movie' of the request in record 0 .* is int32 \[3\], expected int64",
        ),
        ([REQUESTS[0], example(movie=1)], "both tf.Examples and requests"),
    ],
)
def test_files_with_something_else(embedded, tmp_path, content, message):
    file = record(tmp_path / "traffic", *content)
    with pytest.raises(ExportError, match=message):
        export_saved_model(embedded, tmp_path / "out", examples=file)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("traffic", b"user,item\n1,2\n" * 10),
        ("traffic.gz", gzip.compress(b"", mtime=0)[:10] + b"\xff" * 20),
    ],
)
def test_a_damaged_file_is_refused_by_name(embedded, tmp_path, name, data):
    """tests/loadtest/test_traffic.py damages records in other ways."""
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ExportError, match=f"{name} is not a readable TFRecord file"):
        export_saved_model(embedded, tmp_path / "out", examples=tmp_path / name)


def test_warmup_requests_are_ones_that_servers_can_run(embedded, tmp_path):
    output = tmp_path / "out"
    export_saved_model(embedded, output, warmup=[1, 20])
    file = output / "assets.extra" / "tf_serving_warmup_requests"
    logs = [
        prediction_log_pb2.PredictionLog.FromString(record.numpy())
        for record in tf.data.TFRecordDataset(str(file))
    ]
    assert [log.predict_log.request.model_spec.signature_name for log in logs] == ["columnar"] * 2
    with served(output) as model:
        for log, rows in zip(logs, [1, 20], strict=True):
            inputs = log.predict_log.request.inputs
            columns = {name: tf.make_ndarray(value) for name, value in inputs.items()}
            assert np.shape(model.run("columnar", columns)["scores"]) == (rows,)


def test_late_warmup_sends_the_user_once_in_a_separate_file(embedded, tmp_path):
    output = tmp_path / "out"
    export_saved_model(embedded, output, user_features=["user_*"], late=True, warmup=[5])
    users = {}
    for name in ("tf_serving_warmup_requests", "colcast_warmup_requests"):
        for record in tf.data.TFRecordDataset(str(output / "assets.extra" / name)):
            request = prediction_log_pb2.PredictionLog.FromString(
                record.numpy()
            ).predict_log.request
            users[name, request.model_spec.signature_name] = request.inputs["user_age"]
    rows = {key: tensor.tensor_shape.dim[0].size for key, tensor in users.items()}
    assert rows["tf_serving_warmup_requests", "columnar"] == 5
    assert rows["colcast_warmup_requests", "columnar_late"] == 1
    assert ("tf_serving_warmup_requests", "columnar_late") not in rows


def test_late_expansion_is_tried_with_recorded_rows_where_generated_ones_fail(tmp_path):
    PAIRS_MODEL.build(tmp_path / "model")
    examples = PAIRS_MODEL.examples(200, seed=0)
    report = export_saved_model(
        tmp_path / "model",
        tmp_path / "out",
        user_features=["user_*"],
        late=True,
        examples=record(tmp_path / "traffic", *examples),
    )
    late = report.signatures[0].late
    assert late is not None
    assert late.user_ops > 0
