"""Which models and versions serve, and how configurations change that while the server runs."""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from colcast.server import ServerProcess, find_executable
from google.protobuf import text_format
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tensorflow_serving.apis import model_management_pb2
from tensorflow_serving.config import model_server_config_pb2

from .servers import FAST, Stubs

CONFIG = model_server_config_pb2.ModelServerConfig
OK = grpc.StatusCode.OK.value[0]
Versions = Any  # a list, or None for the latest version


@pytest.fixture(scope="module", name="rankers")
def _rankers(tmp_path_factory, ranker_versions):
    """A base path of versions 1, 2 and 3; version N multiplies the user by 100 N."""
    base_path = tmp_path_factory.mktemp("rankers")
    for version in (1, 2, 3):
        ranker_versions(base_path / str(version), weight=float(version))
    return base_path


@pytest.fixture(name="copy")
def _copy(tmp_path, rankers):
    """A function that copies a version of `rankers`; it appears only when it is complete."""

    def copy(version, to):
        shutil.copytree(rankers / str(version), tmp_path / "copying")
        to.parent.mkdir(exist_ok=True)
        (tmp_path / "copying").rename(to)

    return copy


def config(**models: tuple[Path | str, Versions, dict[str, int]]) -> Any:
    """A configuration of models, each given as (base path, versions, labels)."""
    result = CONFIG()
    result.model_config_list.SetInParent()
    for name, (path, versions, labels) in models.items():
        entry = result.model_config_list.config.add(
            name=name, base_path=str(path), model_platform="tensorflow", version_labels=labels
        )
        if versions is not None:
            entry.model_version_policy.specific.versions.extend(versions)
    return result


@contextlib.contextmanager
def running(file: Path, first: Any, *flags: str) -> Iterator[ServerProcess]:
    """Starts a server of a configuration, which is written to the file."""
    file.write_text(text_format.MessageToString(first))
    with ServerProcess(flags=[f"--model_config_file={file}", FAST[0], *flags]) as server:
        yield server


@pytest.fixture(scope="module", name="reloading")
def _reloading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server without models; tests change its configuration."""
    file = tmp_path_factory.mktemp("reloading") / "models.config"
    with running(file, config(), *FAST) as server:
        yield server


@pytest.fixture(name="reloaded")
def _reloaded(reloading: ServerProcess) -> Callable[[Any], Stubs]:
    """A function that reloads the server; returns stubs for the first model."""

    def reloaded(first: Any) -> Stubs:
        stubs = Stubs(reloading.target, model=first.model_config_list.config[0].name)
        stubs.server = reloading
        reload(stubs, first)
        return stubs

    return reloaded


def reload(stubs, new):
    request = model_management_pb2.ReloadConfigRequest(config=new)
    response = stubs.models.HandleReloadConfigRequest(request, timeout=120)
    assert response.status.error_code == 0
    assert response.status.error_message == ""


def refused(call, *arguments, **options):
    """The (code, message) of the RpcError that a call raises."""
    with pytest.raises(grpc.RpcError) as error:
        call(*arguments, **options)
    return error.value.code(), error.value.details()


def score(stubs, inputs, **spec):
    return stubs.predict(inputs, **spec)["score"][0]


def available(stubs, name=""):
    return {
        version for version, (state, _, _) in stubs.states(name).items() if state == "AVAILABLE"
    }


def break_version(base_path: Path) -> Path:
    """Writes a version 1 that cannot be loaded; returns the base path."""
    (base_path / "1").mkdir(parents=True)
    (base_path / "1" / "saved_model.pb").write_bytes(b"not a graph")
    return base_path


def test_reload_replaces_the_whole_configuration(reloaded, rankers, ranker_inputs, wait_until):
    stubs = reloaded(config(first=(rankers, [1], {})))
    log = stubs.server.log
    reload(stubs, config(first=(rankers, [1], {}), second=(rankers, [2], {})))
    assert score(stubs, ranker_inputs, name="first") == 201
    assert score(stubs, ranker_inputs, name="second") == 401
    assert log().count('model "first" version 1: loading') == 1
    reload(stubs, config(second=(rankers, [2], {})))
    assert refused(score, stubs, ranker_inputs)[0] is grpc.StatusCode.NOT_FOUND
    assert score(stubs, ranker_inputs, name="second") == 401
    wait_until(lambda: 'model "first" version 1: unloaded' in log())
    reload(stubs, config(first=(rankers, [1], {})))
    assert score(stubs, ranker_inputs) == 201


def test_a_bad_reload_keeps_the_served_models(reloaded, rankers, tmp_path, ranker_inputs):
    served = (rankers, [1], {})
    stubs = reloaded(config(steady=served))
    bad = config(steady=(rankers, [2], {}), other=("relative", [1], {}))
    code, details = refused(reload, stubs, bad)
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert all(word in details for word in ("other", "relative"))
    assert refused(reload, stubs, CONFIG())[0] == grpc.StatusCode.INVALID_ARGUMENT
    broken, missing = break_version(tmp_path / "broken"), tmp_path / "missing"
    bad = config(steady=served, broken=(broken, [1], {}), missing=(missing, [1], {}))
    code, details = refused(reload, stubs, bad)
    assert code == grpc.StatusCode.UNKNOWN
    assert "2 model(s) did not become available" in details
    assert f"{broken}/1" in details
    assert f'"missing": no version under {missing}' in details
    code, details = refused(reload, stubs, config(steady=(missing, [1], {})))  # it moves
    assert (code, f"no version under {missing}" in details) == (grpc.StatusCode.UNKNOWN, True)
    assert score(stubs, ranker_inputs) == 201
    assert available(stubs) == {1}


def test_labels_name_versions_and_move(reloaded, rankers, ranker_inputs, wait_until):
    both = [1, 2]
    stubs = reloaded(config(labelled=(rankers, both, {})))
    wait_until(lambda: available(stubs) == {1, 2})
    reload(stubs, config(labelled=(rankers, both, {"stable": 1, "canary": 2})))
    assert score(stubs, ranker_inputs, label="stable") == 201
    assert score(stubs, ranker_inputs, label="canary") == 401
    reload(stubs, config(labelled=(rankers, both, {"stable": 2})))
    assert score(stubs, ranker_inputs, label="stable") == 401
    code, _ = refused(score, stubs, ranker_inputs, label="canary")
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    code, details = refused(reload, stubs, config(labelled=(rankers, both, {"stable": 3})))
    assert code == grpc.StatusCode.FAILED_PRECONDITION
    assert "version 3 of model labelled" in details
    assert score(stubs, ranker_inputs, label="stable") == 401


def test_a_label_is_waited_for_until_its_version_serves(
    tmp_path, copy, ranker_inputs, monkeypatch, wait_until
):
    """Also tests a label of a model that is added to the configuration later."""
    monkeypatch.chdir(tmp_path)  # Unix socket paths must be short
    base_path, labels = tmp_path / "ranker", {"stable": 1, "canary": 2}
    copy(1, base_path / "1")
    (tmp_path / "models.config").write_text(str(config(ranker=(base_path, [1, 2], labels))))
    flags = ["--port=0", "--grpc_socket_path=s", "--model_config_file=models.config", FAST[0]]
    flags += ["--allow_version_labels_for_unavailable_models"]
    flags += ["--ready_labels=ranker:stable,ranker:canary,ranker:new"]
    log = tmp_path / "log"
    with (
        log.open("w") as written,
        subprocess.Popen([find_executable(), "--host=127.0.0.1", *flags], stderr=written) as server,
    ):
        try:
            wait_until(lambda: "the configuration has no such label" in log.read_text())
            assert 'label "canary" (--ready_labels): version 2 does not serve' in log.read_text()
            assert '"stable"' not in log.read_text()
            stubs = Stubs("unix:s")
            health = health_pb2_grpc.HealthStub(stubs.channel)

            def is_ready() -> bool:
                check = health_pb2.HealthCheckRequest()
                answer = health.Check(check, timeout=120, wait_for_ready=True)
                return answer.status == health_pb2.HealthCheckResponse.SERVING

            assert not is_ready()
            assert score(stubs, ranker_inputs, label="stable") == 201
            reload(stubs, config(ranker=(base_path, [1, 2], labels | {"new": 1})))
            assert not is_ready()
            copy(2, base_path / "2")
            wait_until(is_ready)
            assert score(stubs, ranker_inputs, label="canary") == 401
        finally:
            server.terminate()


def test_the_file_is_read_again_and_a_wrong_one_changes_nothing(
    rankers, tmp_path, ranker_inputs, wait_until
):
    file, beside = tmp_path / "models.config", tmp_path / "beside"
    flag = "--model_config_file_poll_wait_seconds=0.05"
    with running(file, config(ranker=(rankers, [1], {})), flag) as server:
        stubs = Stubs(server.target)
        beside.write_text("model_config_list {\n oops }")
        beside.rename(file)
        wait_until(lambda: "models.config:2:" in server.log())
        assert score(stubs, ranker_inputs) == 201
        beside.write_text(text_format.MessageToString(config(ranker=(rankers, [2], {}))))
        beside.rename(file)
        wait_until(lambda: score(stubs, ranker_inputs) == 401)
        assert server.log().count("models.config:2:") == 1


def test_without_polls_a_hangup_reads_the_file_and_a_reload_looks_for_versions(
    tmp_path, copy, ranker_inputs, wait_until
):
    file, base_path = tmp_path / "models.config", tmp_path / "ranker"
    copy(1, base_path / "1")
    latest = config(ranker=(base_path, None, {}))
    with running(file, latest, "--file_system_poll_wait_seconds=0") as server:
        stubs = Stubs(server.target)
        copy(2, base_path / "2")
        assert set(stubs.states()) == {1}
        reload(stubs, latest)
        wait_until(lambda: score(stubs, ranker_inputs) == 401)
        file.unlink()
        file.mkdir()
        os.kill(server.pid, signal.SIGHUP)
        wait_until(lambda: "models.config: it is not a regular file" in server.log())
        file.rmdir()
        file.write_text(text_format.MessageToString(config(ranker=(base_path, [1], {}))))
        os.kill(server.pid, signal.SIGHUP)
        wait_until(lambda: score(stubs, ranker_inputs) == 201)


def test_versions_that_come_and_go_on_disk(reloaded, tmp_path, copy, ranker_inputs, wait_until):
    base_path = tmp_path / "ranker"
    copy(1, base_path / "1")
    stubs = reloaded(config(coming=(base_path, None, {})))
    copy(2, base_path / "2")
    wait_until(lambda: available(stubs) == {2})
    assert stubs.states()[1][0] in ("UNLOADING", "END")
    shutil.rmtree(base_path / "2")
    wait_until(lambda: available(stubs) == {1})
    assert score(stubs, ranker_inputs) == 201
    shutil.rmtree(base_path / "1")
    wait_until(lambda: available(stubs) == set())
    assert refused(score, stubs, ranker_inputs)[0] is grpc.StatusCode.NOT_FOUND
    copy(3, base_path / "1")
    wait_until(lambda: available(stubs) == {1})
    assert score(stubs, ranker_inputs) == 601
    base_path.rename(tmp_path / "away")  # a base path that vanishes unloads nothing
    wait_until(lambda: f"{base_path} is not a readable directory" in stubs.server.log())
    assert score(stubs, ranker_inputs) == 601
