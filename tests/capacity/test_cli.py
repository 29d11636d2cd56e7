"""`colcast capacity`: what it prints, from results of real load tests, too, and what it refuses."""

import json
from pathlib import Path

import pytest
from colcast.cli.main import main
from colcast.loadtest.climb import Climbed, Knob, Setting
from colcast.loadtest.search import Sla, Verdict, Window
from colcast.loadtest.tune_report import Tuned, write

from .results import load_test, observed, written

LITTLE = ["--requests", "6000"]


def capacity(*options: str) -> int:
    """Of 3,000 requests per second within 30 ms."""
    return main(["capacity", "--rate", "3000", "--sla-p99", "30ms", *LITTLE, *options])


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    """Results of one server with two workers: idle, loaded, with users that it knows."""
    return written(
        tmp_path,
        idle=load_test(20, users_found=0.0),
        loaded=load_test(400, users_found=0.0),
        known=load_test(21, users_found=1.0, mean_ms=1.0),
    )


def test_it_prints_replicas_flags_and_what_it_assumes(paths, capsys):
    assert capacity("--workers", "2", *paths[:2]) == 0
    told = " ".join(capsys.readouterr().out.split())  # whatever the terminal's width
    assert "3,000 per second with p99 <= 30 ms, 1 to spare" in told
    assert "each with --num_workers=2" in told
    assert "as measured" in told
    assert "round robin: 8 replicas; one server was measured" in told
    assert "Poisson" in told


def test_with_users_it_compares_ways_to_divide_them(paths, capsys):
    users = ["--users", "zipf:5000:1", "--user-state-bytes", "2000000", "--state-bytes", "2000"]
    assert capacity("--workers", "2", "--json", *users, *paths) == 0
    found = json.loads(capsys.readouterr().out)
    turns, by_user, bounded = found["plans"]
    assert turns["hit_rate"] < by_user["hit_rate"]
    assert by_user["cpu_ms"] < turns["cpu_ms"]
    assert bounded["routing"] == "by user, at most 1.5 times the mean"
    assert found["flags"] == ["--num_workers=2", "--user_state_bytes=2000000"]
    assert any("a replica keeps 1,000 of their states" in line for line in found["assumed"])
    assert any("users found; measured were 0 %, 0 %, 100 %" in one for one in found["extrapolated"])
    assert [one["rate"] for one in found["checked"]] == [400.0]


def test_a_rate_that_no_replica_was_measured_at_is_said(paths, capsys):
    assert capacity("--workers", "2", paths[0]) == 0
    told = " ".join(capsys.readouterr().out.split())  # whatever the terminal's width
    assert "per second and replica; 20 per second was the highest measured" in told
    assert "not measured under load" in told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sla-p99", "2ms", "--workers", "2"], "with hardly any load the p99 was"),
        ([], "--workers: a load test does not say"),
        (["--workers", "2", "--series", "other"], "no series 'other'; it has 'late'"),
        (["--workers", "2", "--users", "zipf:5"], "wanted is zipf:COUNT:EXPONENT"),
        (["--workers", "2", "--found", "0.1", "--found", "1"], "--found is given 2 times for 1"),
        (["--workers", "2", "--sla-p99", "60"], "wanted is a time like 25ms"),
    ],
)
def test_what_cannot_be_told_is_refused(paths, capsys, options, message):
    assert capacity(*options, paths[0]) in (1, 2)
    assert message in capsys.readouterr().err


def test_other_files_are_refused(tmp_path, capsys):
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "old.json").write_text(
        '{"rate": 5, "best": [], "tried": [{"flags": [], "windows": [{"rate": 1}]}]}'
    )
    for name, message in (("list.json", "expected report.json"), ("old.json", "measure again")):
        assert capacity("--workers", "2", str(tmp_path / name)) == 1
        assert message in capsys.readouterr().err


def test_a_tune_result_has_its_own_flags(tmp_path, capsys):
    """As `colcast tune` writes it; the windows of other settings say nothing of the best one."""
    knob = Knob("workers", "--num_workers={}", (1, 2), 1)
    best, other = Setting((knob,), (2,)), Setting((knob,), (1,))
    windows = {
        (2,): [Window(rate, 9.0, Verdict.HOLDS, observed(rate)) for rate in (20, 400)],
        (1,): [Window(9000, 9.0, Verdict.HOLDS, observed(30))],
    }
    climbed = Climbed(best, 400.0, {best.values: 400.0, other.values: 0.0})
    write(Tuned(climbed, windows, Sla(99, 30.0)), "movies", tmp_path)
    assert capacity("--json", str(tmp_path)) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["flags"] == ["--num_workers=2"]
    assert found["highest_measured_per_second"] == 400
    assert capacity("--workers", "1", str(tmp_path)) == 2
    assert "different numbers of workers: [1, 2]" in capsys.readouterr().err


def test_a_real_result_is_read(exported, tmp_path, capsys):
    """Of `colcast loadtest`, against a server; times are as they are."""
    from colcast.loadtest.metrics import page_of, publishing
    from colcast.server import ServerProcess

    with ServerProcess("small", exported, publishing(tmp_path)) as server:
        command = ["loadtest", "--target", server.target, "--model", "small", "--formats", "late"]
        command += ["--clients", "1", "--seconds", "0.3", "--sizes", "20", "--distinct", "5"]
        command += ["--metrics", page_of(server.rest_target), "--output", str(tmp_path / "known")]
        assert main(command) == 0
    observed = json.loads((tmp_path / "known" / "report.json").read_text())["series"][0]["observed"]
    assert observed["users_found"] > 0.9
    capsys.readouterr()
    late = "the load generator was late"  # of a machine that is busy
    code = main(
        [
            "capacity",
            "--rate",
            "50",
            "--sla-p99",
            "60s",
            *LITTLE,
            "--workers",
            "2",
            str(tmp_path / "known"),
        ]
    )
    told = capsys.readouterr()
    assert code == 0 or late in told.err
    assert "round robin" in told.out or late in told.err
    assert capacity("--workers", "2", "--users", "zipf:50:1", str(tmp_path / "known")) == 1
    told = capsys.readouterr()
    assert "cost of a miss is not known" in told.err or late in told.err
