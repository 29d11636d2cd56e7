"""Many models: which versions serve, what becomes of broken ones, and what the status says."""

import shutil

import grpc
import pytest
from colcast.server import ServerProcess

FAST = ["--file_system_poll_wait_seconds=0.05"]
OK = grpc.StatusCode.OK.value[0]


def config(*models):
    """The text of a configuration; a model is its name, its base path and further fields."""
    entries = [
        f'config {{ name: "{name}" base_path: "{path}" model_platform: "tensorflow" {more} }}'
        for name, path, more in models
    ]
    return "model_config_list { " + "\n".join(entries) + " }"


@pytest.fixture
def serve(tmp_path):
    """Makes a server from a configuration's text and further flags."""

    def serve(text, *flags):
        file = tmp_path / "models.config"
        file.write_text(text)
        return ServerProcess(flags=[f"--model_config_file={file}", *FAST, *flags])

    return serve


@pytest.fixture(scope="module")
def rankers(tmp_path_factory, ranker_versions):
    """A base path with versions 1, 2 and 3; version N multiplies the user by 100 N."""
    base_path = tmp_path_factory.mktemp("rankers")
    for version in (1, 2, 3):
        ranker_versions(base_path / str(version), weight=float(version))
    return base_path


@pytest.fixture
def copy(tmp_path, rankers):
    """Copies a version of `rankers` so that it is complete from one moment to the next."""

    def copy(version, to):
        beside = tmp_path / "copying"
        shutil.copytree(rankers / str(version), beside)
        to.parent.mkdir(exist_ok=True)
        beside.rename(to)

    return copy


def available(stubs, name="ranker"):
    return {
        version for version, (state, _, _) in stubs.states(name).items() if state == "AVAILABLE"
    }


def code_of(call):
    with pytest.raises(grpc.RpcError) as error:
        call()
    return error.value.code()


def test_good_models_serve_beside_a_broken_and_a_missing_one(
    serve, rankers, tmp_path, connect, ranker_inputs
):
    (tmp_path / "broken" / "1").mkdir(parents=True)
    (tmp_path / "broken" / "1" / "saved_model.pb").write_bytes(b"not a graph")
    text = config(
        ("good", rankers, ""),
        ("broken", tmp_path / "broken", ""),
        ("missing", tmp_path / "missing", ""),
        ("other", rankers, "model_version_policy { specific { versions: 1 } }"),
    )
    with serve(text, "--max_num_load_retries=0") as server:
        stubs = connect(server.target)
        assert stubs.predict(ranker_inputs, name="good")["score"][0] == 601
        assert stubs.predict(ranker_inputs, name="other")["score"][0] == 201
        assert available(stubs, "good") == {3}
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
        assert server.log().count(f"{tmp_path}/missing is not a directory that can be read") == 1


@pytest.mark.parametrize(
    ("policy", "versions"),
    [
        ("latest { num_versions: 2 }", {2, 3}),
        ("all {}", {1, 2, 3}),
        ("specific { versions: 1 versions: 3 versions: 7 }", {1, 3}),
    ],
)
def test_the_policy_says_which_versions_serve(
    serve, rankers, connect, ranker_inputs, wait_until, policy, versions
):
    text = config(("ranker", rankers, f"model_version_policy {{ {policy} }}"))
    with serve(text) as server:
        stubs = connect(server.target)
        wait_until(lambda: available(stubs) == versions)
        for version in versions:
            score = stubs.predict(ranker_inputs, version=version)["score"][0]
            assert score == 200 * version + 1
        latest = stubs.predict(ranker_inputs)["score"][0]
        assert latest == 200 * max(versions) + 1
        absent = lambda: stubs.predict(ranker_inputs, version=9)  # noqa: E731
        assert code_of(absent) == grpc.StatusCode.NOT_FOUND
        if "7" in policy:
            assert server.log().count("version 7, which its version policy names") == 1


def test_versions_that_come_and_go_on_disk(
    serve, tmp_path, copy, connect, ranker_inputs, wait_until
):
    base_path = tmp_path / "ranker"
    copy(1, base_path / "1")
    with serve(config(("ranker", base_path, ""))) as server:
        stubs = connect(server.target)
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


def test_a_base_path_that_vanishes_takes_nothing_out(
    serve, tmp_path, copy, connect, ranker_inputs, wait_until
):
    base_path = tmp_path / "ranker"
    copy(1, base_path / "1")
    with serve(config(("ranker", base_path, ""))) as server:
        base_path.rename(tmp_path / "away")
        wait_until(lambda: "is not a directory that can be read" in server.log())
        assert connect(server.target).predict(ranker_inputs)["score"][0] == 201


def test_a_version_that_is_still_being_copied_waits_for_its_graph(
    serve, tmp_path, rankers, connect, ranker_inputs, wait_until
):
    base_path = tmp_path / "ranker"
    shutil.copytree(rankers / "1", base_path / "1")
    with serve(config(("ranker", base_path, ""))) as server:
        stubs = connect(server.target)
        shutil.copytree(
            rankers / "2", base_path / "2", ignore=shutil.ignore_patterns("saved_model.pb")
        )
        wait_until(lambda: f"{base_path}/2 is left out" in server.log())
        assert available(stubs) == {1}
        shutil.copy(rankers / "2" / "saved_model.pb", base_path / "2" / "copying")
        (base_path / "2" / "copying").rename(base_path / "2" / "saved_model.pb")
        wait_until(lambda: available(stubs) == {2})
        assert server.log().count("is left out") == 1


def test_links_and_odd_names(serve, tmp_path, rankers, connect, ranker_inputs):
    base_path = tmp_path / "ranker"
    base_path.mkdir()
    (base_path / "8").symlink_to(rankers / "2")
    (base_path / "9").symlink_to(tmp_path / "nowhere")
    (base_path / "99999999999999999999").symlink_to(rankers / "3")
    (base_path / "10").write_text("a file")
    with serve(config(("ranker", base_path, ""))) as server:
        stubs = connect(server.target)
        assert available(stubs) == {8}
        assert stubs.predict(ranker_inputs)["score"][0] == 401
        for name in ("9", "10", "99999999999999999999"):
            assert server.log().count(f"{base_path}/{name} is left out") == 1


def test_a_broken_version_is_retried_while_the_one_before_serves(
    serve, tmp_path, copy, connect, ranker_inputs, wait_until
):
    base_path = tmp_path / "ranker"
    copy(1, base_path / "1")
    flags = ["--max_num_load_retries=2", "--load_retry_interval_micros=1000"]
    with serve(config(("ranker", base_path, "")), *flags) as server:
        stubs = connect(server.target)
        (base_path / "2").mkdir()
        (base_path / "2" / "saved_model.pb").write_bytes(b"not a graph")
        wait_until(lambda: stubs.states().get(2, ("",))[0] == "END")
        assert server.log().count("version 2: loading") == 3
        assert server.log().count("next attempt in") == 2
        assert server.log().count("given up; what served before goes on serving") == 1
        assert available(stubs) == {1}
        assert stubs.predict(ranker_inputs)["score"][0] == 201


def test_a_version_given_up_on_is_tried_again_when_it_is_replaced(
    serve, tmp_path, rankers, copy, connect, ranker_inputs, wait_until
):
    base_path = tmp_path / "ranker"
    copy(1, base_path / "1")
    with serve(config(("ranker", base_path, "")), "--max_num_load_retries=0") as server:
        stubs = connect(server.target)
        copy(2, base_path / "2")
        wait_until(lambda: available(stubs) == {2})
        copy(3, tmp_path / "later")
        graph = (tmp_path / "later" / "saved_model.pb").read_bytes()
        (tmp_path / "later" / "saved_model.pb").write_bytes(graph[: len(graph) // 2])
        (tmp_path / "later").rename(base_path / "3")
        wait_until(lambda: stubs.states().get(3, ("",))[0] == "END")
        assert "given up" in server.log()
        (base_path / "3" / "saved_model.pb").write_bytes(graph)
        wait_until(lambda: available(stubs) == {3})
        assert stubs.predict(ranker_inputs)["score"][0] == 601


@pytest.mark.parametrize("late", ["variables.index", "variables.data-00000-of-00001"])
def test_variables_that_come_after_the_graph_are_waited_for(
    serve, tmp_path, rankers, copy, connect, wait_until, late
):
    base_path = tmp_path / "ranker"
    copy(1, base_path / "1")
    flags = ["--max_num_load_retries=1000", "--load_retry_interval_micros=50000"]
    with serve(config(("ranker", base_path, "")), *flags) as server:
        stubs = connect(server.target)
        shutil.copytree(rankers / "2", tmp_path / "copying")
        (tmp_path / "copying" / "variables" / late).rename(tmp_path / late)
        (tmp_path / "copying").rename(base_path / "2")
        wait_until(lambda: stubs.states().get(2, ("", OK))[1] != OK)
        assert stubs.states()[2][0] == "LOADING"
        assert late.split("-")[0] in stubs.states()[2][2]
        assert available(stubs) == {1}
        (tmp_path / late).rename(base_path / "2" / "variables" / late)
        wait_until(lambda: available(stubs) == {2})
        assert stubs.states()[2] == ("AVAILABLE", OK, "")


def test_a_model_that_does_not_fit_in_memory_is_refused_with_its_sizes(
    serve, tmp_path, copy, connect, ranker_inputs, wait_until
):
    base_path = tmp_path / "ranker"
    copy(1, base_path / "1")
    with serve(config(("ranker", base_path, "")), "--max_num_load_retries=0") as server:
        stubs = connect(server.target)
        copy(2, tmp_path / "large")
        with (tmp_path / "large" / "assets" / "table").open("wb") as table:
            table.truncate(1 << 42)  # takes no room on the disk
        (tmp_path / "large").rename(base_path / "2")
        wait_until(lambda: stubs.states().get(2, ("",))[0] == "END")
        _, code, message = stubs.states()[2]
        assert code == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
        assert "4194304 MiB on disk" in message
        assert "MiB are available" in message
        assert stubs.predict(ranker_inputs)["score"][0] == 201


def test_killed_and_started_again_it_serves(serve, rankers, connect, ranker_inputs):
    text = config(("ranker", rankers, ""))
    with serve(text) as server:
        server.kill()
    with serve(text) as server:
        assert connect(server.target).predict(ranker_inputs)["score"][0] == 601


def test_an_empty_configuration_is_ready(serve, connect, ranker_inputs):
    with serve("model_config_list {}") as server:
        call = lambda: connect(server.target).predict(ranker_inputs)  # noqa: E731
        assert code_of(call) == grpc.StatusCode.NOT_FOUND
