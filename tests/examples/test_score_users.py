"""examples/offline: Ray's workers rank a table of users even if processes die meanwhile."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from colcast.client import RankingClient
from colcast.server import ServerProcess

from ..models import stages_model
from ..waiting import wait_until

pytestmark = pytest.mark.xdist_group("ray")
SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "offline" / "score_users.py"
USERS, ITEMS, PER_BLOCK = 600, 50, 5


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, its items, and users in two files, each with lists of candidates."""
    folder = tmp_path_factory.mktemp("data")
    stages_model.save(folder / "ranker" / "3")
    random = np.random.default_rng(5)
    columns = stages_model.inputs(random, USERS, ITEMS)
    user = {name: list(columns.pop(name)) for name in stages_model.DOMAINS["user"]}
    lengths = columns.pop("tags/length")
    columns = {name: list(values) for name, values in columns.items()}
    columns["tags"] = [tags[:n] for tags, n in zip(columns["tags"], lengths, strict=True)]
    pq.write_table(
        pa.table({"key": [f"i{n}" for n in range(ITEMS)], **columns}), folder / "items.parquet"
    )
    user["who"] = [f"u{n}" for n in range(USERS)]
    user["seen"] = [
        [f"i{n}" for n in random.choice(ITEMS, random.integers(0, 9), replace=False)]
        for _ in range(USERS)
    ]
    table = pa.table(user)
    (folder / "users").mkdir()
    pq.write_table(table.slice(0, 401), folder / "users" / "a.parquet", row_group_size=7)
    pq.write_table(table.slice(401), folder / "users" / "b.parquet")
    return folder


def command(data: Path, output: Path, *options: str) -> list[str]:
    """The command line, with two workers and few users per block."""
    paths = {"users": "users", "items": "items.parquet", "model-base-path": "ranker"}
    given = [f"--{name}={data / path}" for name, path in paths.items()]
    given += ["--user-key=who", "--item-key=key", f"--output={output}", "--workers=2"]
    given += [f"--users-per-block={PER_BLOCK}", "--items-per-request=20", *options]
    return [sys.executable, str(SCRIPT), *given]


def run(data: Path, output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(data, output, *options), capture_output=True, text=True, env=surroundings(output)
    )


def surroundings(output: Path) -> dict[str, str]:
    """The environment: a home for Ray's token, and normal priority for Ray's workers."""
    return {**os.environ, "HOME": str(output.parent), "RAY_worker_niceness": "0"}


@contextmanager
def running(data: Path, output: Path, *options: str) -> Iterator[psutil.Popen]:
    """Runs the program in the background."""
    process = psutil.Popen(
        command(data, output, *options), stderr=subprocess.PIPE, text=True, env=surroundings(output)
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def parts(output: Path) -> dict[Path, int]:
    """The finished blocks, each with its modification time."""
    return {path: path.stat().st_mtime_ns for path in output.glob("part-*.parquet")}


def begun(process: psutil.Popen, output: Path) -> None:
    """Waits until a few blocks are finished."""

    def some() -> bool:
        assert process.poll() is None, process.stderr.read()
        return len(parts(output)) > 3

    wait_until(some)


def servers(process: psutil.Process) -> list[psutil.Process]:
    """The native servers that the process or its workers started."""
    found = process.children(recursive=True)
    return [
        one
        for one in found
        if "colcast_model_server" in one.name() or "colcast_model_s" in one.name()
    ]


def listening(process: psutil.Process) -> set[str]:
    """The addresses on which the process and its child processes listen."""
    found = set()
    for one in [process, *process.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            sockets = one.net_connections("tcp")
            found |= {socket.laddr.ip for socket in sockets if socket.status == psutil.CONN_LISTEN}
    return found


def ended(process: psutil.Process) -> bool:
    """Whether the process has ended, even if it is still a zombie."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def ranked(output: Path) -> dict[str, dict[str, float]]:
    """The scores by user and item; checks that no user occurs twice."""
    rows = [row for path in sorted(parts(output)) for row in pq.read_table(path).to_pylist()]
    found = {row["who"]: dict(zip(row["items"], row["scores"], strict=True)) for row in rows}
    assert len(rows) == len(found) == USERS
    assert all(row["scores"] == sorted(row["scores"], reverse=True) for row in rows)
    return found


@pytest.fixture(scope="module")
def expected(data: Path) -> dict[str, dict[str, float]]:
    """All users' scores, from the client and one server."""
    users = pq.read_table(data / "users").to_pylist()
    items = pq.read_table(data / "items.parquet")
    keys = items["key"].to_pylist()
    with (
        ServerProcess("ranker", data / "ranker") as server,
        RankingClient(server.target, "ranker", timeout_seconds=60) as client,
    ):
        found = {}
        for user in users:
            features = {name: user[name] for name in stages_model.DOMAINS["user"]}
            scores = client.rank(features, items.drop_columns(["key"])).scores
            found[user["who"]] = dict(zip(keys, scores.tolist(), strict=True))
    return found


def check(output: Path, expected: dict[str, dict[str, float]]) -> None:
    found = ranked(output)
    for user, scores in expected.items():
        assert found[user] == pytest.approx(scores, rel=1e-5, abs=1e-5)


def test_scores_equal_the_clients_even_if_a_worker_is_killed(data, tmp_path, expected):
    output = tmp_path / "ranked"
    with running(data, output, "--top=0") as process:
        begun(process, output)
        assert listening(process) <= {"127.0.0.1", "::ffff:127.0.0.1"}
        started = servers(process)
        victim = started[0].parent()
        victim.kill()
        assert len(parts(output)) < USERS // PER_BLOCK, "finished before the worker was killed"
        errors = process.communicate()[1]
        assert process.returncode == 0, errors
    check(output, expected)
    assert "600 users ranked" in errors
    wait_until(lambda: all(map(ended, started)))
    assert (output / "_SUCCESS").exists()


def test_a_restart_scores_the_remaining_blocks(data, tmp_path, expected):
    output, options = tmp_path / "ranked", ["--candidates=seen", "--top=3"]
    with running(data, output, *options) as process:
        begun(process, output)
        started = servers(process)
        started += [server.parent() for server in started]
        process.kill()
    wait_until(lambda: all(map(ended, started)))
    before = parts(output)
    assert 0 < len(before) < USERS // PER_BLOCK
    some = sorted(before)[0]
    some.write_bytes(some.read_bytes()[:100])  # truncated, as by an interrupted copy
    (output / ".part-000009.parquet.half").write_bytes(b"PAR1")
    refused = run(data, output, "--candidates=seen", "--top=4")
    assert refused.returncode == 1
    assert "belongs to a job with other top" in refused.stderr
    (data / "ranker" / "4").symlink_to(data / "ranker" / "3")  # a version published in the meantime
    done = run(data, output, *options)
    (data / "ranker" / "4").unlink()
    assert done.returncode == 0, done.stderr
    assert json.loads((output / "_job.json").read_text())["version"] == 3
    after = parts(output)
    assert {path for path in before if after[path] != before[path]} == {some}
    assert not list(output.glob(".part-*"))
    seen = {row["who"]: row["seen"] for row in pq.read_table(data / "users").to_pylist()}
    best = {
        user: sorted([(scores[key], key) for key in seen[user]], reverse=True)[:3]
        for user, scores in expected.items()
    }
    check(output, {user: {key: score for score, key in top} for user, top in best.items()})
    again = run(data, output, *options)
    assert "121 blocks, 121 of them finished before" in again.stderr


def test_a_missing_name_is_reported(data, tmp_path):
    missing = run(data, tmp_path / "ranked", "--user-key=name")
    assert missing.returncode == 1
    assert "no column 'name'; the columns are age, city, history, who, seen" in missing.stderr
