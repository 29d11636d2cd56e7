"""Model configurations: which are refused, and changes while the server runs."""

import os
import signal
import subprocess

import grpc
import pytest
from colcast.server import ServerProcess, find_executable
from google.protobuf import text_format
from tensorflow_serving.apis import get_model_status_pb2, model_management_pb2
from tensorflow_serving.config import model_server_config_pb2

from .servers import Stubs

FAST = ["--file_system_poll_wait_seconds=0.05"]
CONFIG = model_server_config_pb2.ModelServerConfig


@pytest.fixture(scope="module")
def rankers(tmp_path_factory, ranker_versions):
    """A base path of versions 1 and 2; version N multiplies the user by 100 N."""
    base_path = tmp_path_factory.mktemp("rankers")
    for version in (1, 2):
        ranker_versions(base_path / str(version), weight=float(version))
    return base_path


def config(**models):
    """A configuration of models, each given as (base path, versions, labels)."""
    result = CONFIG()
    result.model_config_list.SetInParent()
    for name, (path, versions, labels) in models.items():
        entry = result.model_config_list.config.add(
            name=name, base_path=str(path), model_platform="tensorflow", version_labels=labels
        )
        entry.model_version_policy.specific.versions.extend(versions)
    return result


@pytest.fixture
def reloaded(reloading):
    """A function that reloads the server; returns it and stubs for the first model."""

    def reloaded(first):
        stubs = Stubs(reloading.target, model=first.model_config_list.config[0].name)
        reload(stubs, first)
        return reloading, stubs

    return reloaded


@pytest.fixture
def serve(tmp_path):
    """A function that makes a server from a configuration and further flags."""

    def serve(first, *flags):
        file = tmp_path / "models.config"
        file.write_text(text_format.MessageToString(first))
        return ServerProcess(flags=[f"--model_config_file={file}", *FAST, *flags])

    return serve


def reload(stubs, new):
    request = model_management_pb2.ReloadConfigRequest(config=new)
    response = stubs.models.HandleReloadConfigRequest(request, timeout=60)
    assert response.status.error_code == 0
    assert response.status.error_message == ""


def refused(stubs, new):
    with pytest.raises(grpc.RpcError) as error:
        reload(stubs, new)
    return error.value.code(), error.value.details()


def score(stubs, inputs, **spec):
    return stubs.predict(inputs, **spec)["score"][0]


def code_of(call):
    with pytest.raises(grpc.RpcError) as error:
        call()
    return error.value.code()


def test_a_bad_configuration_file_ends_the_server_in_one_line(tmp_path):
    (tmp_path / "models.config").write_text(
        "model_config_list { config { name: 'a' base_path: '/m' model_platform: 'tensorflow'"
        " version_labels { key: 'stable' value: 7 } } }"
    )
    done = subprocess.run(
        [find_executable(), "--host=127.0.0.1", "--port=0", "--model_config_file=models.config"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0
    assert len(done.stderr.splitlines()) == 1
    for words in ("version 7 of model a", "--allow_version_labels_for_unavailable_models"):
        assert words in done.stderr


def test_reload_replaces_the_whole_configuration(reloaded, rankers, ranker_inputs, wait_until):
    server, stubs = reloaded(config(first=(rankers, [1], {})))
    reload(stubs, config(first=(rankers, [1], {}), second=(rankers, [2], {})))
    assert score(stubs, ranker_inputs, name="first") == 201
    assert score(stubs, ranker_inputs, name="second") == 401
    assert server.log().count('model "first" version 1: loading') == 1
    reload(stubs, config(second=(rankers, [2], {})))
    gone = lambda: score(stubs, ranker_inputs, name="first")  # noqa: E731
    assert code_of(gone) == grpc.StatusCode.NOT_FOUND
    assert score(stubs, ranker_inputs, name="second") == 401
    wait_until(lambda: 'model "first" version 1: unloaded' in server.log())
    reload(stubs, config(first=(rankers, [1], {})))
    assert score(stubs, ranker_inputs, name="first") == 201


def test_a_bad_reload_keeps_the_served_models(reloaded, rankers, ranker_inputs):
    _, stubs = reloaded(config(steady=(rankers, [1], {})))
    bad = config(steady=(rankers, [2], {}), other=("relative", [1], {}))
    code, details = refused(stubs, bad)
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert "other" in details
    assert "relative" in details
    bad = config(steady=(rankers, [2], {}))
    bad.model_config_list.config[0].model_platform = "caffe"
    code, details = refused(stubs, bad)
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert "caffe" in details
    assert refused(stubs, CONFIG())[0] == grpc.StatusCode.INVALID_ARGUMENT
    assert score(stubs, ranker_inputs) == 201
    assert set(stubs.states()) == {1}


def test_a_new_model_that_does_not_load_is_reported(reloaded, rankers, tmp_path, ranker_inputs):
    _, stubs = reloaded(config(served=(rankers, [1], {})))
    (tmp_path / "broken" / "1").mkdir(parents=True)
    (tmp_path / "broken" / "1" / "saved_model.pb").write_bytes(b"not a graph")
    code, details = refused(
        stubs,
        config(
            served=(rankers, [1], {}),
            broken=(tmp_path / "broken", [1], {}),
            missing=(tmp_path / "missing", [1], {}),
        ),
    )
    assert code == grpc.StatusCode.UNKNOWN
    assert "2 model(s) did not become available" in details
    assert f"{tmp_path}/broken/1" in details
    assert f'"missing": no version under {tmp_path}/missing' in details
    assert score(stubs, ranker_inputs) == 201


def test_labels_name_versions_and_move(reloaded, rankers, ranker_inputs, wait_until):
    both = [1, 2]
    _, stubs = reloaded(config(labelled=(rankers, both, {})))
    wait_until(lambda: [state for state, *_ in stubs.states().values()] == ["AVAILABLE"] * 2)
    reload(stubs, config(labelled=(rankers, both, {"stable": 1, "canary": 2})))
    assert score(stubs, ranker_inputs, label="stable") == 201
    assert score(stubs, ranker_inputs, label="canary") == 401
    reload(stubs, config(labelled=(rankers, both, {"stable": 2})))
    assert score(stubs, ranker_inputs, label="stable") == 401
    unknown = lambda: score(stubs, ranker_inputs, label="canary")  # noqa: E731
    assert code_of(unknown) == grpc.StatusCode.INVALID_ARGUMENT
    code, details = refused(stubs, config(labelled=(rankers, both, {"stable": 3})))
    assert code == grpc.StatusCode.FAILED_PRECONDITION
    assert "version 3 of model labelled" in details
    assert score(stubs, ranker_inputs, label="stable") == 401


def test_a_model_that_moves_to_a_base_path_without_a_version_is_reported(
    reloaded, rankers, tmp_path, ranker_inputs
):
    moved = tmp_path / "moved"
    (moved / "1").mkdir(parents=True)
    (moved / "1" / "saved_model.pb").write_bytes(b"not a graph")
    _, stubs = reloaded(config(moving=(rankers, [1], {})))
    code, details = refused(stubs, config(moving=(tmp_path / "none", [1], {})))
    assert code == grpc.StatusCode.UNKNOWN
    assert f"no version under {tmp_path}/none" in details
    assert score(stubs, ranker_inputs) == 201
    reload(stubs, config(moving=(rankers, [1], {})))
    assert stubs.states()[1][0] == "AVAILABLE"
    refused(stubs, config(moving=(moved, [1], {})))
    status = get_model_status_pb2.GetModelStatusRequest()
    status.model_spec.name = "moving"
    versions = stubs.models.GetModelStatus(status, timeout=120).model_version_status
    assert [each.version for each in versions] == [1]
    assert versions[0].state == versions[0].AVAILABLE
    code, details = refused(stubs, config(moving=(str(rankers) + "\0/x", [1], {})))
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert "followed by a NUL byte" in details


def test_a_model_name_forges_no_line_of_the_log(reloaded, rankers):
    forged = "ranker\n2026-01-01 00:00:00.000Z ERROR the disk is full"
    server, stubs = reloaded(config(ranker=(rankers, [1], {})))
    reload(stubs, config(**{forged: (rankers, [1], {})}))
    assert "\\x0a2026-01-01 00:00:00.000Z ERROR the disk is full" in server.log()
    assert not any(line.startswith("2026-01-01") for line in server.log().splitlines())


def test_the_file_is_read_again(serve, rankers, tmp_path, connect, ranker_inputs, wait_until):
    def write(text):
        (tmp_path / "beside").write_text(text)
        (tmp_path / "beside").rename(tmp_path / "models.config")

    flag = "--model_config_file_poll_wait_seconds=0.05"
    with serve(config(ranker=(rankers, [1], {})), flag) as server:
        stubs = connect(server.target)
        write("model_config_list {\n oops }")
        wait_until(lambda: "models.config:2:" in server.log())
        assert score(stubs, ranker_inputs) == 201
        write(text_format.MessageToString(config(ranker=(rankers, [2], {}))))
        wait_until(lambda: score(stubs, ranker_inputs) == 401)
        assert server.log().count("models.config:2:") == 1


def test_a_hangup_reads_the_file_again(
    serve, rankers, tmp_path, connect, ranker_inputs, wait_until
):
    with serve(config(ranker=(rankers, [1], {}))) as server:
        stubs = connect(server.target)
        (tmp_path / "models.config").unlink()
        (tmp_path / "models.config").mkdir()
        os.kill(server.pid, signal.SIGHUP)
        wait_until(lambda: "models.config: it is not a regular file" in server.log())
        (tmp_path / "models.config").rmdir()
        text = text_format.MessageToString(config(ranker=(rankers, [2], {})))
        (tmp_path / "models.config").write_text(text)
        os.kill(server.pid, signal.SIGHUP)
        wait_until(lambda: score(stubs, ranker_inputs) == 401)


def test_with_poll_0_versions_are_looked_for_once_and_after_a_reload(
    serve, rankers, tmp_path, ranker_versions, connect, ranker_inputs, wait_until
):
    (tmp_path / "ranker").mkdir()
    ranker_versions(tmp_path / "ranker" / "1", weight=1.0)
    latest = config(ranker=(tmp_path / "ranker", [], {}))
    latest.model_config_list.config[0].ClearField("model_version_policy")
    with serve(latest, "--file_system_poll_wait_seconds=0") as server:
        stubs = connect(server.target)
        ranker_versions(tmp_path / "ranker" / "2", weight=2.0)
        assert set(stubs.states()) == {1}
        reload(stubs, latest)
        wait_until(lambda: score(stubs, ranker_inputs) == 401)
