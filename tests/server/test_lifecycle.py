"""Start, wrong starts, new versions, stop."""

import re
import socket
import subprocess
import threading
from importlib.metadata import version

import grpc
import numpy as np
import pytest
from colcast.server import ServerProcess, find_executable


def run_server(*flags):
    """Runs a server that is expected to refuse; returns its exit code and the lines it printed."""
    done = subprocess.run(
        [find_executable(), "--host=127.0.0.1", *flags], capture_output=True, text=True, timeout=60
    )
    return done.returncode, (done.stdout + done.stderr).splitlines()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], ["--model_base_path is required"]),
        (["--max_queued_requests=0", "--model_base_path=x"], ["--max_queued_requests=0", "1"]),
    ],
)
def test_wrong_flags_are_refused_in_one_line(flags, words):
    code, lines = run_server(*flags)
    assert code != 0
    assert len(lines) == 1
    assert all(word in lines[0] for word in words), lines


@pytest.mark.parametrize("flag", ["--port", "--rest_api_port"])
def test_a_port_in_use_is_refused_by_name(flag):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, lines = run_server("--port=0", f"{flag}={port}", "--model_base_path=x")
    assert code != 0
    assert len(lines) == 1
    assert f"127.0.0.1:{port}" in lines[0]


def test_a_single_model_that_was_given_up_ends_the_server(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"not a graph")
    code, lines = run_server(
        "--port=0", f"--model_base_path={tmp_path}", "--max_num_load_retries=0"
    )
    assert code != 0
    assert re.search(rf"version 1 cannot be loaded from {tmp_path}/1: .", lines[-1])


def test_version_is_printed():
    done = subprocess.run([find_executable(), "--version"], capture_output=True, text=True)
    assert done.returncode == 0
    assert re.fullmatch(
        rf"colcast_model_server \d+\.\d+\.\d+\nTensorFlow Library: {version('tensorflow-cpu')}\n",
        done.stdout,
    )


def test_a_base_path_without_a_version_waits_and_says_so(tmp_path, ranker_versions, connect):
    command = [
        find_executable(),
        "--host=127.0.0.1",
        "--port=0",
        "--model_name=ranker",
        f"--model_base_path={tmp_path}",
        "--file_system_poll_wait_seconds=0.05",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert f"no version under {tmp_path} yet" in process.stderr.readline()
            ranker_versions(tmp_path / "1")
            log = ""
            while "ready: gRPC on " not in log:
                log = process.stderr.readline()
                assert log, "the server ended"
        finally:
            process.terminate()
        assert process.wait(30) == 0


def test_sigterm_answers_what_is_in_flight(ranker_base_path, connect, ranker_inputs, wait_until):
    with ServerProcess("ranker", ranker_base_path, ["--num_workers=1"]) as server:
        stubs = connect(server.target)
        many = ranker_inputs | {
            "item": np.arange(200_000, dtype=np.float32),
            "item_name": ["x"] * 200_000,
        }
        request = stubs.request(many)
        calls = [stubs.prediction.Predict.future(request, timeout=120) for _ in range(4)]
        wait_until(lambda: any(call.done() for call in calls))
        assert server.stop(timeout_seconds=120) == 0
    codes = {call.code() for call in calls}
    assert codes <= {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}
    assert calls[0].code() == grpc.StatusCode.OK


def test_without_a_port_there_is_no_rest(server):
    assert server.rest_target == ""


def test_many_threads_get_their_own_answers(stubs, ranker_inputs):
    wrong = []

    def ask(user):
        for _ in range(50):
            score = stubs.predict(ranker_inputs | {"user": [user]})["score"]
            if score.tolist() != [100 * user + 1, 100 * user + 2, 100 * user + 3]:
                wrong.append((user, score))

    threads = [threading.Thread(target=ask, args=(float(user),)) for user in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def exported_symbols(binary):
    """The dynamic symbols a binary defines, less the copies of libc's and libstdc++'s own."""
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", "--extern-only", binary],
        capture_output=True,
        text=True,
        check=True,
    )
    names = [line.split()[-1] for line in listing.stdout.splitlines()]
    return [name for name in names if not re.search("@(GLIBC|GLIBCXX|CXXABI)_", name)]


ALLOCATOR = {
    "aligned_alloc",
    "calloc",
    "free",
    "malloc",
    "malloc_usable_size",
    "memalign",
    "posix_memalign",
    "realloc",
    "valloc",
}


def test_the_executable_links_no_tensorflow_and_exports_the_allocator_only():
    executable = find_executable()
    libraries = subprocess.run(["ldd", executable], capture_output=True, text=True, check=True)
    assert "tensorflow" not in libraries.stdout
    assert set(exported_symbols(executable)) == ALLOCATOR


def test_the_engine_exports_its_entry_point_only():
    (engine,) = find_executable().parent.glob("libcolcast_engine-*.so")
    assert exported_symbols(engine) == ["ColcastCreateEngine"]
