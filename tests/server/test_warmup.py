"""Warm-up requests before a version serves, and versions that crash the loading process."""

import contextlib
import shutil
import signal
import subprocess
from pathlib import Path

import grpc
import pytest
import tensorflow as tf
from colcast.server import ServerProcess, find_executable
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import prediction_log_pb2

from .conftest import config_flag, save_waiting_ranker
from .servers import NOTHING_KEPT, ONE_WORKER, Stubs

OK = grpc.StatusCode.OK.value[0]


class Counter(tf.Module):
    """A model that counts its runs; the output is the count so far."""

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
    """Saves a version of the counter, with a warm-up file of these bytes or logs."""
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
        "examples": example_logs(),  # a MultiInference runs two signatures
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


FAST = ["--file_system_poll_wait_seconds=0.05", "--max_num_load_retries=0"]


def clear_a_calls_outputs(model):
    """Makes TensorFlow abort (SIGABRT) while it restores variables."""
    for node in model.meta_graphs[0].graph_def.node:
        if "Tout" in node.attr:
            del node.attr["Tout"].list.type[:]


@pytest.fixture(name="ranker")
def _ranker(tmp_path, ranker_base_path):
    """The base path of a ranker that only this test uses."""
    shutil.copytree(ranker_base_path, tmp_path / "ranker")
    return tmp_path / "ranker"


def add_version(ranker, damage=lambda version: None):
    """Adds version 9, a copy of version 3, perhaps damaged."""
    shutil.copytree(ranker / "3", ranker.with_name("copied"))
    damage(ranker.with_name("copied"))
    ranker.with_name("copied").rename(ranker / "9")


def make_fatal(version):
    """Makes TensorFlow crash when it loads a version."""
    file = version / "saved_model.pb"
    model = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    clear_a_calls_outputs(model)
    file.write_bytes(model.SerializeToString())


@pytest.fixture(name="refusal")
def _refusal(ranker_inputs, wait_until):
    """A function that returns why version 9 was refused; version 3 then still serves."""

    def refusal(stubs):
        wait_until(lambda: stubs.states().get(9, ("",))[0] == "END")
        assert stubs.predict(ranker_inputs)["score"][0] == 201
        return stubs.states()[9][2]

    return refusal


def test_a_fatal_model_leaves_other_models_and_the_previous_version(
    ranker, ranker_inputs, refusal, wait_until
):
    bad = ranker.with_name("bad")
    shutil.copytree(ranker / "3", bad / "1")
    make_fatal(bad / "1")
    config = config_flag(ranker.with_name("models.config"), {"ranker": ranker, "bad": bad})
    with ServerProcess(flags=[config, *FAST]) as server:
        stubs = Stubs(server.target)
        said = "a process that loaded it ended with signal 6"
        assert said in stubs.states("bad")[1][2]
        with pytest.raises(grpc.RpcError) as error:
            stubs.predict(ranker_inputs, name="bad")
        assert error.value.code() == grpc.StatusCode.NOT_FOUND
        add_version(ranker, make_fatal)
        assert said in refusal(stubs)
        wait_until(lambda: "the versions that served before keep serving" in server.log())


def test_a_version_that_never_loads_is_given_up_by_name(tmp_path, ranker, refusal):
    save_waiting_ranker(tmp_path / "9", tmp_path / "pipe")  # nobody reads the pipe
    flags = [*FAST, "--load_check_timeout_seconds=2"]
    with ServerProcess("ranker", ranker, flags) as server:
        (tmp_path / "9").rename(ranker / "9")
        message = refusal(Stubs(server.target))
    assert 'model "ranker" version 9' in message
    assert "had not ended after 2 s (--load_check_timeout_seconds)" in message


def test_stopping_the_server_ends_its_load_check(tmp_path, ranker_base_path, wait_until):
    """The check waits because nobody reads its pipe."""
    directory = tmp_path / "ranker" / "3"
    save_waiting_ranker(directory, tmp_path / "pipe")
    models = {"ranker": tmp_path / "ranker", "other": ranker_base_path}
    flags = [config_flag(tmp_path / "models.config", models), "--port=0", "--host=127.0.0.1"]
    command = [find_executable(), *flags, "--drain_timeout_seconds=5"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        check = f"--load_check_directory={directory}"
        wait_until(lambda: any(check in line for line in command_lines()))
        server.send_signal(signal.SIGTERM)
        _, said = server.communicate(timeout=120)
    assert server.returncode == 0, said
    assert "after --drain_timeout_seconds" not in said
    assert not any(check in line for line in command_lines())


def command_lines():
    """The command line of every running process."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield (process / "cmdline").read_text(errors="replace")
