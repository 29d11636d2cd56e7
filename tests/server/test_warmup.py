"""Warm-up: recorded requests run before a version serves; one that fails keeps it from serving."""

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from .servers import NOTHING_KEPT, ONE_WORKER

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


def save(base_path, version, warmup):
    """Writes a version of the counter whose warm-up file holds these bytes, or logs."""
    module = Counter()
    folder = base_path.with_name("saving")
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
    base_path.mkdir(exist_ok=True)
    folder.rename(base_path / str(version))


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


def next_count(stubs):
    return stubs.predict({"x": [0.0]})["count"][0]


@pytest.mark.parametrize(("flags", "runs"), [(ONE_WORKER, 4 * 3), (NOTHING_KEPT, 0)])
def test_recorded_requests_run_before_the_version_serves(serve, tmp_path, flags, runs):
    save(tmp_path / "counter", 1, [predict_log(x=[0.0])] * 3)
    stubs = serve(tmp_path / "counter", *flags)
    assert next_count(stubs) == runs + 1
    log = [line for line in stubs.server.log().splitlines() if f'"{stubs.model}"' in line]
    assert ("warmed up with 3 requests" if runs else "not warmed up") in "\n".join(log)


def test_every_record_runs_once(serve, tmp_path):
    records = {
        "predict": [predict_log(x=[0.0])] * 3,
        "examples": example_logs(),  # MultiInference asks for both signatures
        "nothing": [prediction_log_pb2.PredictionLog(), predict_log(x=[0.0])],
    }
    for name, logs in records.items():
        save(tmp_path / name, 1, logs)
    counts = {name: next_count(serve(tmp_path / name)) for name in records}
    assert counts == {"predict": 3 + 1, "examples": 1 + 1 + 2 + 1, "nothing": 1 + 1}


def session_run():
    log = prediction_log_pb2.PredictionLog()
    log.session_run_log.SetInParent()
    return log


BAD = [
    (
        [predict_log(x=[0.0]), predict_log(y=[0.0])],
        grpc.StatusCode.INVALID_ARGUMENT,
        ["record 2 of ", "y"],
    ),
    ([session_run()], grpc.StatusCode.UNIMPLEMENTED, ["session_run_log"]),
    (b"no TFRecord at all", grpc.StatusCode.DATA_LOSS, ["at byte 0"]),
    ([predict_log(x=[0.0])] * 1001, grpc.StatusCode.INVALID_ARGUMENT, ["1000 records"]),
]


def test_a_bad_record_keeps_the_version_from_serving(serve, tmp_path, wait_until):
    base_path = tmp_path / "counter"
    save(base_path, 1, [])
    stubs = serve(base_path)
    for version, (warmup, code, words) in enumerate(BAD, 2):
        save(base_path, version, warmup)
        wait_until(lambda v=version: stubs.states().get(v, ("",))[0] == "END")
        _, error_code, message = stubs.states()[version]
        assert error_code == code.value[0]
        assert "tf_serving_warmup_requests" in message
        assert all(word in message for word in words), message
        assert stubs.states()[1] == ("AVAILABLE", OK, "")
    assert next_count(stubs) == 1
