"""Warm-up: recorded requests run before a version serves; one that fails keeps it from serving."""

import grpc
import pytest
import tensorflow as tf
from colcast.server import ServerProcess
from tensorflow_serving.apis import prediction_log_pb2

OK = grpc.StatusCode.OK.value[0]


class Counter(tf.Module):
    """Each run of any signature adds one; the count so far comes out."""

    def __init__(self):
        super().__init__()
        self.count = tf.Variable(0.0)

    def next(self, rows):
        return tf.fill([rows], self.count.assign_add(1.0, read_value=True))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def predict(self, x):
        return {"count": self.next(tf.shape(x)[0])}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def classify(self, inputs):
        return {"scores": self.next(tf.shape(inputs)[0])[:, tf.newaxis]}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def regress(self, inputs):
        return {"outputs": self.next(tf.shape(inputs)[0])}


@pytest.fixture
def save(tmp_path):
    """Writes a version of the counter whose warm-up file holds these bytes, or logs."""

    def save(version, warmup):
        module = Counter()
        folder = tmp_path / "saving"
        signatures = {
            "serving_default": module.predict,
            "classify": module.classify,
            "regress": module.regress,
        }
        tf.saved_model.save(module, str(folder), signatures=signatures)
        file = folder / "assets.extra" / "tf_serving_warmup_requests"
        file.parent.mkdir()
        if isinstance(warmup, bytes):
            file.write_bytes(warmup)
        else:
            with tf.io.TFRecordWriter(str(file)) as writer:
                for log in warmup:
                    writer.write(log.SerializeToString())
        (tmp_path / "counter").mkdir(exist_ok=True)
        folder.rename(tmp_path / "counter" / str(version))
        return tmp_path / "counter"

    return save


def predict_log(**inputs):
    log = prediction_log_pb2.PredictionLog()
    log.predict_log.request.model_spec.name = "whatever"
    for name, value in inputs.items():
        log.predict_log.request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return log


def example_logs():
    classify = prediction_log_pb2.PredictionLog()
    request = classify.classify_log.request
    request.model_spec.signature_name = "classify"
    request.input.example_list.examples.add()
    regress = prediction_log_pb2.PredictionLog()
    request = regress.regress_log.request
    request.model_spec.signature_name = "regress"
    request.input.example_list.examples.add()
    multi = prediction_log_pb2.PredictionLog()
    request = multi.multi_inference_log.request
    request.input.example_list.examples.add()
    for method in ("classify", "regress"):
        task = request.tasks.add(method_name=f"tensorflow/serving/{method}")
        task.model_spec.name = "counter"
        task.model_spec.signature_name = method
    return [classify, regress, multi]


def next_count(connect, server):
    return connect(server.target).predict({"x": [0.0]}, name="counter")["count"][0]


@pytest.mark.parametrize(
    ("flags", "runs"),
    [
        ([], 3),
        (["--num_request_iterations_for_warmup=4"], 12),
        (["--enable_model_warmup=false"], 0),
    ],
)
def test_recorded_requests_run_before_the_version_serves(save, connect, flags, runs):
    base_path = save(1, [predict_log(x=[0.0])] * 3)
    with ServerProcess("counter", base_path, flags) as server:
        assert next_count(connect, server) == runs + 1
        assert ("warmed up with 3 requests" if runs else "not warmed up") in server.log()


def test_classify_regress_and_multi_inference_are_replayed(save, connect):
    # MultiInference asks for both signatures.
    with ServerProcess("counter", save(1, example_logs())) as server:
        assert next_count(connect, server) == 1 + 1 + 2 + 1


def test_a_record_of_nothing_is_none(save, connect):
    base_path = save(1, [prediction_log_pb2.PredictionLog(), predict_log(x=[0.0])])
    with ServerProcess("counter", base_path) as server:
        assert next_count(connect, server) == 2


def session_run():
    log = prediction_log_pb2.PredictionLog()
    log.session_run_log.SetInParent()
    return log


@pytest.mark.parametrize(
    ("warmup", "code", "words"),
    [
        (
            [predict_log(x=[0.0]), predict_log(y=[0.0])],
            grpc.StatusCode.INVALID_ARGUMENT,
            ["record 2 of ", "y"],
        ),
        ([session_run()], grpc.StatusCode.UNIMPLEMENTED, ["session_run_log"]),
        (b"no TFRecord at all", grpc.StatusCode.DATA_LOSS, ["at byte 0"]),
        ([predict_log(x=[0.0])] * 1001, grpc.StatusCode.INVALID_ARGUMENT, ["1000 records"]),
    ],
)
def test_a_bad_record_keeps_the_version_from_serving(
    save, connect, wait_until, warmup, code, words
):
    base_path = save(1, [])
    flags = ["--max_num_load_retries=0", "--file_system_poll_wait_seconds=0.05"]
    with ServerProcess("counter", base_path, flags) as server:
        save(2, warmup)
        stubs = connect(server.target)
        wait_until(lambda: stubs.states("counter").get(2, ("",))[0] == "END")
        _, error_code, message = stubs.states("counter")[2]
        assert error_code == code.value[0]
        assert "tf_serving_warmup_requests" in message
        assert all(word in message for word in words), message
        assert next_count(connect, server) == 1
        assert stubs.states("counter")[1] == ("AVAILABLE", OK, "")
