"""The command line of `python -m colcast.loadtest.bench`."""

import pytest
from colcast.loadtest.bench import main


@pytest.mark.parametrize(
    ("flag", "text"),
    [("--clients", "0"), ("--rounds", "0"), ("--calls", "0"), ("--sizes", "abc")],
)
def test_numbers_out_of_range_are_refused_under_their_flags(
    flag: str, text: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit):
        main([flag, text, "--models", "none"])
    assert f"argument {flag}: {text} is not a whole number above 0" in capsys.readouterr().err


def test_the_help_says_what_it_is_without_the_commands(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["--help"])
    told = capsys.readouterr().out
    assert "End to end: models of the zoo" in told
    assert "make bench" not in told
