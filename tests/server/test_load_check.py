"""Versions that end the process that loads them, as single flipped bits did: the server stays."""

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

import grpc
import pytest
from colcast.server import ServerProcess, find_executable
from tensorflow.core.protobuf import saved_model_pb2

from .conftest import save_waiting_ranker

FAST = ["--file_system_poll_wait_seconds=0.05", "--max_num_load_retries=0"]
ENTRY = 'config {{ name: "{0}" base_path: "{1}" model_platform: "tensorflow" }}'


def make_a_name_an_input(model):
    """SIGSEGV in the graph optimizer."""
    functions = model.meta_graphs[0].graph_def.library.function
    for served in (each for each in functions if "traced" not in each.signature.name):
        node = next((n for n in served.node_def if n.op == "Identity"), None)
        if node is not None:
            node.input.insert(0, node.name)
            node.name = ""


def clear_a_calls_outputs(model):
    """SIGABRT while variables are restored."""
    for node in model.meta_graphs[0].graph_def.node:
        if "Tout" in node.attr:
            del node.attr["Tout"].list.type[:]


DAMAGE = {"SIGSEGV": make_a_name_an_input, "SIGABRT": clear_a_calls_outputs}


@pytest.fixture(name="damaged", params=DAMAGE)
def damage_a_version(request, tmp_path, ranker_base_path):
    """The directory of a version that TensorFlow does not survive."""
    directory = tmp_path / "damaged" / "9"
    shutil.copytree(ranker_base_path / "3", directory)
    file = directory / "saved_model.pb"
    model = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    DAMAGE[request.param](model)
    file.write_bytes(model.SerializeToString())
    return directory


def test_a_new_version_that_kills_leaves_the_one_before(
    damaged, ranker_base_path, tmp_path, connect, ranker_inputs, wait_until
):
    shutil.copytree(ranker_base_path, tmp_path / "ranker")
    with ServerProcess("ranker", tmp_path / "ranker", FAST) as server:
        stubs = connect(server.target)
        damaged.rename(tmp_path / "ranker" / "9")
        wait_until(lambda: stubs.states().get(9, ("",))[0] == "END")
        assert "a process that loaded it ended with signal" in stubs.states()[9][2]
        assert stubs.predict(ranker_inputs)["score"][0] == 201
        wait_until(lambda: "what served before goes on serving" in server.log())


def test_a_model_that_kills_leaves_the_others(
    damaged, ranker_base_path, tmp_path, connect, ranker_inputs
):
    config = tmp_path / "models.config"
    entries = [ENTRY.format("ranker", ranker_base_path), ENTRY.format("bad", damaged.parent)]
    config.write_text(f"model_config_list {{ {' '.join(entries)} }}")
    with ServerProcess(flags=[f"--model_config_file={config}", *FAST]) as server:
        stubs = connect(server.target)
        assert stubs.predict(ranker_inputs)["score"][0] == 201
        assert "a process that loaded it ended with signal" in stubs.states("bad")[9][2]
        with pytest.raises(grpc.RpcError) as error:
            stubs.predict(ranker_inputs, name="bad")
        assert error.value.code() == grpc.StatusCode.NOT_FOUND


def test_a_pipe_in_a_version_is_refused_by_name(
    tmp_path, ranker_base_path, connect, ranker_inputs, wait_until
):
    shutil.copytree(ranker_base_path, tmp_path / "ranker")
    shutil.copytree(ranker_base_path / "3", tmp_path / "9")
    (tmp_path / "9" / "assets.extra").mkdir(exist_ok=True)
    os.mkfifo(tmp_path / "9" / "assets.extra" / "tf_serving_warmup_requests")
    with ServerProcess("ranker", tmp_path / "ranker", FAST) as server:
        stubs = connect(server.target)
        (tmp_path / "9").rename(tmp_path / "ranker" / "9")
        wait_until(lambda: stubs.states().get(9, ("",))[0] == "END")
        message = stubs.states()[9][2]
        assert 'model "ranker" version 9' in message
        assert "tf_serving_warmup_requests: it is no regular file" in message
        assert stubs.predict(ranker_inputs)["score"][0] == 201


def test_an_error_is_reported_by_the_load_itself(tmp_path, ranker_base_path, connect, wait_until):
    shutil.copytree(ranker_base_path, tmp_path / "ranker")
    with ServerProcess("ranker", tmp_path / "ranker", FAST) as server:
        stubs = connect(server.target)
        (tmp_path / "9").mkdir()
        (tmp_path / "9" / "saved_model.pb").write_bytes(b"not a graph")
        (tmp_path / "9").rename(tmp_path / "ranker" / "9")
        wait_until(lambda: stubs.states().get(9, ("",))[0] == "END")
        assert "cannot be loaded from" in stubs.states()[9][2]
        assert "signal" not in stubs.states()[9][2]


def test_a_version_that_never_loads_is_given_up_by_name(
    tmp_path, ranker_base_path, connect, ranker_inputs, wait_until
):
    shutil.copytree(ranker_base_path, tmp_path / "ranker")
    save_waiting_ranker(tmp_path / "9", tmp_path / "pipe")  # that nobody reads
    flags = [*FAST, "--load_check_timeout_seconds=2"]
    with ServerProcess("ranker", tmp_path / "ranker", flags) as server:
        stubs = connect(server.target)
        (tmp_path / "9").rename(tmp_path / "ranker" / "9")
        wait_until(lambda: stubs.states().get(9, ("",))[0] == "END")
        message = stubs.states()[9][2]
        assert 'model "ranker" version 9' in message
        assert "had not ended after 2 s (--load_check_timeout_seconds)" in message
        assert stubs.predict(ranker_inputs)["score"][0] == 201


def test_a_stop_ends_the_check_first(tmp_path, ranker_base_path, wait_until):
    """The checking process waits for a pipe that nobody reads."""
    directory = tmp_path / "ranker" / "3"
    save_waiting_ranker(directory, tmp_path / "pipe")
    models = {"ranker": tmp_path / "ranker", "other": ranker_base_path}
    config = "\n".join(ENTRY.format(name, path) for name, path in models.items())
    (tmp_path / "models.config").write_text(f"model_config_list {{ {config} }}")
    flags = [f"--model_config_file={tmp_path / 'models.config'}", "--port=0", "--host=127.0.0.1"]
    command = [find_executable(), *flags, "--drain_timeout_seconds=5"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        check = f"--load_check_directory={directory}"
        wait_until(lambda: any(check in line for line in command_lines()))
        server.send_signal(signal.SIGTERM)
        _, said = server.communicate(timeout=120)
    assert server.returncode == 0, said
    assert "a model still runs" not in said
    assert not any(check in line for line in command_lines())


def command_lines():
    """Of all processes."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield (process / "cmdline").read_text(errors="replace")
