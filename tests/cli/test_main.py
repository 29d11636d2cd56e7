"""The colcast command: what it says when it can not do what it was told."""

import sys

from colcast.cli.main import main


def test_without_a_subcommand_it_lists_them_and_fails(capsys):
    assert main([]) == 2
    listed = capsys.readouterr().out
    assert all(name in listed for name in ("export", "inspect", "serve", "rank", "loadtest"))


def test_help_is_no_failure(capsys):
    assert main(["--help"]) == 0
    assert "usage: colcast" in capsys.readouterr().out


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
