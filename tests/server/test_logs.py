"""--log_format=json: every line an object, from the start to the end, errors too."""

import json
import re
import signal
import subprocess

from colcast.server import ServerProcess, find_executable


def test_every_line_is_an_object_with_time_severity_and_message(ranker_base_path):
    with ServerProcess("ranker", ranker_base_path, ["--log_format=json"]) as server:
        assert server.stop() == 0
        lines = [json.loads(line) for line in server.log().splitlines()]
    assert len(lines) >= 4
    for line in lines:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
        assert line["severity"] in {"INFO", "WARNING", "ERROR"}
    about_version = [line for line in lines if "version" in line]
    assert {(line["model"], line["version"]) for line in about_version} == {("ranker", 3)}
    assert any("serving, loaded in" in line["message"] for line in about_version)


def test_what_ends_the_server_is_an_object_too(tmp_path):
    flags = ["--log_format=json", "--port=70000", f"--model_base_path={tmp_path}"]
    done = subprocess.run(
        [find_executable(), "--host=127.0.0.1", *flags], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    last = json.loads(done.stderr.splitlines()[-1])
    assert last["severity"] == "ERROR"
    assert "--port=70000" in last["message"]


def test_a_log_reader_that_ends_ends_nothing(ranker_base_path, connect, ranker_inputs):
    flags = ["--host=127.0.0.1", "--port=0", "--model_name=ranker"]
    command = [find_executable(), *flags, f"--model_base_path={ranker_base_path}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        ready = next(line for line in server.stderr if "ready: gRPC on" in line)
        server.stderr.close()
        server.send_signal(signal.SIGHUP)  # it logs that
        stubs = connect(re.search(r"gRPC on (\S+)", ready)[1])
        assert stubs.predict(ranker_inputs)["score"][0] == 201
        server.terminate()
        assert server.wait(timeout=120) == 0
