"""The colcast command: what it says when it cannot do what it was told."""

import re
import sys

import colcast.client
import pytest
from colcast.cli.main import main


def test_without_a_subcommand_it_lists_them_and_fails(capsys):
    assert main([]) == 2
    listed = capsys.readouterr().out
    assert all(
        name in listed for name in ("export", "inspect", "serve", "rank", "loadtest", "bench")
    )


def test_help_is_no_failure(capsys):
    assert main(["--help"]) == 0
    assert "usage: colcast" in capsys.readouterr().out


def test_the_version_is_the_distributions(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"colcast {colcast.client.__version__}\n"
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", colcast.client.__version__)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "m"], "the following arguments are required: --server, --items"),
        (["--items", "a.txt"], "a.txt: expected a file that ends in .jsonl, .json, .csv, .parquet"),
        (["--items", "-", "--user", "-"], "only one of --user and --items can be standard input"),
        (["--items", "-", "--top", "0"], "expected a number above 0, got '0'"),
        (["--items", "-", "--target", "fast"], "invalid choice: 'fast'"),
    ],
)
def test_a_wrong_command_line_ends_with_2(capsys, options, message):
    server = [] if "--model" in options else ["--server", "127.0.0.1:1", "--model", "m"]
    with pytest.raises(SystemExit) as ended:
        main(["rank", *server, *options])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_an_unknown_subcommand_is_named(capsys):
    assert main(["exprot"]) == 2
    assert "'exprot'" in capsys.readouterr().err


def test_a_missing_dependency_is_named_with_what_brings_it(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    assert main(["export", "--saved-model", str(tmp_path), "--output", str(tmp_path / "out")]) == 1
    message = capsys.readouterr().err
    assert "colcast export needs tensorflow: pip install 'colcast[export]'" in message


def test_serve_says_where_it_looked_for_the_server(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLCAST_MODEL_SERVER", str(tmp_path / "nowhere"))
    assert main(["serve"]) == 1
    assert "nowhere" in capsys.readouterr().err


def test_an_interrupt_is_one_line(capsys, monkeypatch):
    def interrupted(argv):
        raise KeyboardInterrupt

    monkeypatch.setattr("colcast.client.cli.main", interrupted)
    assert main(["rank"]) == 130
    assert capsys.readouterr().err == "\ncolcast rank: interrupted\n"
