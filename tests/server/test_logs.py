"""--log_format=json: every line an object, from the start to the end, errors too."""

import json
import re
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
