"""Ways to ask a server, compared by its CPU."""

import os
import time

import pytest
from colcast.client import encode_predict_request
from colcast.loadtest.ways import Way, build, compare_ways, predicting, print_ways
from colcast.server import ServerNotBuiltError, ServerProcess


def busy(process_seconds: float) -> None:
    until = time.process_time() + process_seconds
    while time.process_time() < until:
        pass


class ThisProcess:
    """In place of a server: how much CPU it takes is known."""

    pid = os.getpid()


def way(title: str, milliseconds: float, requests: int) -> Way:
    asked = lambda: busy(milliseconds * requests / 1000)  # noqa: E731
    return Way(title, ThisProcess, asked, requests, 1000 * requests)  # type: ignore[arg-type]


def test_figures_are_per_request_and_the_first_round_does_not_count(capsys):
    few, many = compare_ways([way("few", 10, 2), way("many", 20, 3)], rounds=2)
    assert len(few) == len(many) == 2
    assert all(few >= 10)
    assert all(many >= 20)
    print_ways("both", [way("few", 10, 2), way("many", 20, 3)], rounds=1)
    heading, first, second = capsys.readouterr().out.splitlines()
    assert heading == "both"
    assert first.split()[0] == "few"
    assert first.split()[3:] == ["1.000", "1,000", "bytes"]
    assert second.split()[0] == "many"


def test_requests_are_sent_in_turn_and_a_refusal_is_told(served: ServerProcess):
    refused = encode_predict_request("nobody", "serving_default", {})
    asked = predicting("refused", served, [refused, b""], calls=5)
    assert (asked.requests, asked.bytes) == (5, 3 * len(refused))
    with pytest.raises(AssertionError, match="nobody"):
        asked.ask()


def test_a_build_that_is_not_there_is_named(tmp_path):
    with build(tmp_path / "other"), pytest.raises(ServerNotBuiltError, match="other"):
        ServerProcess("m", tmp_path)
