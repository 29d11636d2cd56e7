"""Several models: which versions serve, broken versions, and the status."""

import contextlib
import shutil
from typing import NamedTuple

import grpc
import pytest
from colcast.server import ServerProcess

from .servers import Stubs

OK = grpc.StatusCode.OK.value[0]


class Served(NamedTuple):
    """A server that has only the test's models; `stubs` call the first one."""

    server: ServerProcess
    stubs: Stubs


@pytest.fixture
def serve(reloading, request):
    """A function that serves base paths; each test's models have unique names."""

    def serve(base_path, more="", **others):
        stubs = Stubs(reloading.target, model=request.node.name)
        text = "".join(
            f'config {{ name: "{name}" base_path: "{path}" model_platform: "tensorflow" {more} }}'
            for name, (path, more) in {stubs.model: (base_path, more), **others}.items()
        )
        with contextlib.suppress(grpc.RpcError):  # a model may fail to load
            stubs.reload(text)
        return Served(reloading, stubs)

    return serve


@pytest.fixture(scope="module")
def retrying(tmp_path_factory):
    """A server that retries failed loads."""
    empty = tmp_path_factory.mktemp("retrying") / "models.config"
    empty.write_text("model_config_list {}")
    flags = ["--max_num_load_retries=1000", "--load_retry_interval_micros=50000"]
    poll = "--file_system_poll_wait_seconds=0.05"
    with ServerProcess(flags=[f"--model_config_file={empty}", poll, *flags]) as server:
        yield server


@pytest.fixture(scope="module")
def rankers(tmp_path_factory, ranker_versions):
    """A base path of versions 1, 2 and 3; version N multiplies the user by 100 N."""
    base_path = tmp_path_factory.mktemp("rankers")
    for version in (1, 2, 3):
        ranker_versions(base_path / str(version), weight=float(version))
    return base_path


@pytest.fixture
def copy(tmp_path, rankers):
    """A function that copies a version of `rankers`; it appears only when it is complete."""

    def copy(version, to):
        beside = tmp_path / "copying"
        shutil.copytree(rankers / str(version), beside)
        to.parent.mkdir(exist_ok=True)
        beside.rename(to)

    return copy


def available(stubs, name=""):
    return {
        version for version, (state, _, _) in stubs.states(name).items() if state == "AVAILABLE"
    }


def code_of(call):
    with pytest.raises(grpc.RpcError) as error:
        call()
    return error.value.code()


def test_good_models_serve_beside_a_broken_and_a_missing_one(
    serve, rankers, tmp_path, ranker_inputs
):
    (tmp_path / "broken" / "1").mkdir(parents=True)
    (tmp_path / "broken" / "1" / "saved_model.pb").write_bytes(b"not a graph")
    server, stubs = serve(
        rankers,
        broken=(tmp_path / "broken", ""),
        missing=(tmp_path / "missing", ""),
        other=(rankers, "model_version_policy { specific { versions: 1 } }"),
    )
    assert stubs.predict(ranker_inputs)["score"][0] == 601
    assert stubs.predict(ranker_inputs, name="other")["score"][0] == 201
    assert available(stubs) == {3}
    assert available(stubs, "other") == {1}
    state, code, message = stubs.states("broken")[1]
    assert state == "END"
    assert code != OK
    assert f"version 1 cannot be loaded from {tmp_path}/broken/1: " in message
    with pytest.raises(grpc.RpcError) as error:
        stubs.states("missing")
    assert error.value.code() == grpc.StatusCode.NOT_FOUND
    assert "missing" in error.value.details()
    for name in ("broken", "missing", "unknown"):
        call = lambda name=name: stubs.predict(ranker_inputs, name=name)  # noqa: E731
        assert code_of(call) == grpc.StatusCode.NOT_FOUND
    assert server.log().count(f"{tmp_path}/missing is not a readable directory") == 1


def test_versions_that_come_and_go_on_disk(serve, tmp_path, copy, ranker_inputs, wait_until):
    base_path = tmp_path / "ranker"
    copy(1, base_path / "1")
    stubs = serve(base_path).stubs
    copy(2, base_path / "2")
    wait_until(lambda: available(stubs) == {2})
    assert stubs.states()[1][0] in ("UNLOADING", "END")
    shutil.rmtree(base_path / "2")
    wait_until(lambda: available(stubs) == {1})
    assert stubs.predict(ranker_inputs)["score"][0] == 201
    shutil.rmtree(base_path / "1")
    wait_until(lambda: available(stubs) == set())
    assert code_of(lambda: stubs.predict(ranker_inputs)) == grpc.StatusCode.NOT_FOUND
    copy(3, base_path / "1")
    wait_until(lambda: available(stubs) == {1})
    assert stubs.predict(ranker_inputs)["score"][0] == 601


def test_a_base_path_that_vanishes_unloads_nothing(
    serve, tmp_path, copy, ranker_inputs, wait_until
):
    base_path = tmp_path / "ranker"
    copy(1, base_path / "1")
    server, stubs = serve(base_path)
    base_path.rename(tmp_path / "away")
    wait_until(lambda: f"{base_path} is not a readable directory" in server.log())
    assert stubs.predict(ranker_inputs)["score"][0] == 201


@pytest.mark.parametrize("late", ["variables.index", "variables.data-00000-of-00001"])
def test_variables_that_come_after_the_graph_are_waited_for(
    retrying, tmp_path, rankers, copy, wait_until, late
):
    base_path = tmp_path / "ranker"
    copy(1, base_path / "1")
    stubs = Stubs(retrying.target, model=late)
    model = f'name: "{late}" base_path: "{base_path}" model_platform: "tensorflow"'
    stubs.reload(f"config {{ {model} }}")
    shutil.copytree(rankers / "2", tmp_path / "copying")
    (tmp_path / "copying" / "variables" / late).rename(tmp_path / late)
    (tmp_path / "copying").rename(base_path / "2")
    wait_until(lambda: stubs.states().get(2, ("", OK))[1] != OK)
    assert stubs.states()[2][0] == "LOADING"
    assert "next attempt in" in retrying.log()
    assert late.split("-")[0] in stubs.states()[2][2]
    assert available(stubs) == {1}
    (tmp_path / late).rename(base_path / "2" / "variables" / late)
    wait_until(lambda: available(stubs) == {2})
    assert stubs.states()[2] == ("AVAILABLE", OK, "")
