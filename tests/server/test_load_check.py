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

from .conftest import config_flag, save_waiting_ranker
from .servers import Stubs

FAST = ["--file_system_poll_wait_seconds=0.05", "--max_num_load_retries=0"]


def clear_a_calls_outputs(model):
    """SIGABRT while variables are restored."""
    for node in model.meta_graphs[0].graph_def.node:
        if "Tout" in node.attr:
            del node.attr["Tout"].list.type[:]


@pytest.fixture(scope="module", name="ranker")
def _ranker(tmp_path_factory, ranker_base_path):
    """The base path of a ranker of the module's own."""
    base_path = tmp_path_factory.mktemp("checked") / "ranker"
    shutil.copytree(ranker_base_path, base_path)
    return base_path


@pytest.fixture(scope="module", name="served")
def _served(ranker):
    """A server that checks versions before it loads them."""
    bad = ranker.with_name("bad")
    save_damaged(ranker / "3", bad / "9")
    config = config_flag(ranker.with_name("models.config"), {"ranker": ranker, "bad": bad})
    with ServerProcess(flags=[config, *FAST]) as server:
        yield server, Stubs(server.target)


def save_damaged(version, to):
    """A version that TensorFlow does not survive."""
    shutil.copytree(version, to.with_name("copied"))
    file = to.with_name("copied") / "saved_model.pb"
    model = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    clear_a_calls_outputs(model)
    file.write_bytes(model.SerializeToString())
    to.with_name("copied").rename(to)


def test_what_kills_leaves_other_models_and_the_version_before(
    served, ranker, ranker_inputs, wait_until
):
    server, stubs = served
    assert stubs.predict(ranker_inputs)["score"][0] == 201
    said = "a process that loaded it ended with signal 6"
    assert said in stubs.states("bad")[9][2]
    with pytest.raises(grpc.RpcError) as error:
        stubs.predict(ranker_inputs, name="bad")
    assert error.value.code() == grpc.StatusCode.NOT_FOUND
    save_damaged(ranker / "3", ranker / "5")
    wait_until(lambda: stubs.states().get(5, ("",))[0] == "END")
    assert said in stubs.states()[5][2]
    assert stubs.predict(ranker_inputs)["score"][0] == 201
    wait_until(lambda: "what served before goes on serving" in server.log())


def test_what_is_no_version_is_refused_by_name_and_by_the_load_itself(
    served, ranker, tmp_path, ranker_inputs, wait_until
):
    _, stubs = served
    shutil.copytree(ranker / "3", tmp_path / "9")
    (tmp_path / "9" / "assets.extra").mkdir(exist_ok=True)
    os.mkfifo(tmp_path / "9" / "assets.extra" / "tf_serving_warmup_requests")
    (tmp_path / "10").mkdir()
    (tmp_path / "10" / "saved_model.pb").write_bytes(b"not a graph")
    for version in (9, 10):
        (tmp_path / str(version)).rename(ranker / str(version))
        wait_until(lambda v=version: stubs.states().get(v, ("",))[0] == "END")
    message = stubs.states()[9][2]
    assert 'model "ranker" version 9' in message
    assert "tf_serving_warmup_requests: it is not a regular file" in message
    message = stubs.states()[10][2]
    assert "cannot be loaded from" in message
    assert "signal" not in message
    assert stubs.predict(ranker_inputs)["score"][0] == 201


def test_after_an_upgrade_of_its_files_the_old_version_serves_on(
    tmp_path, ranker_base_path, ranker_inputs, wait_until
):
    """As pip and dpkg do, a new file takes the name of the old one."""
    shutil.copytree(find_executable().parent, tmp_path / "bin")
    shutil.copytree(ranker_base_path, tmp_path / "ranker")
    executable = tmp_path / "bin" / find_executable().name
    with ServerProcess("ranker", tmp_path / "ranker", FAST, executable=executable) as server:
        stubs = Stubs(server.target)
        for engine in (tmp_path / "bin").glob("libcolcast_engine-*.so"):
            engine.unlink()
            engine.write_bytes(b"of another build")
        shutil.copytree(ranker_base_path / "3", tmp_path / "9")
        (tmp_path / "9").rename(tmp_path / "ranker" / "9")
        wait_until(lambda: stubs.states().get(9, ("",))[0] == "END")
        message = stubs.states()[9][2]
        assert f"{tmp_path}/bin/libcolcast_engine" in message
        assert "was replaced or removed since the server started" in message
        assert "restart the server" in message
        assert stubs.predict(ranker_inputs)["score"][0] == 201


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
    flags = [config_flag(tmp_path / "models.config", models), "--port=0", "--host=127.0.0.1"]
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
