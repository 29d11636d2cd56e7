"""What a run in windows shows of itself: a bar on a terminal, lines elsewhere."""

from io import StringIO

import pytest
from colcast.loadtest.report.output import windows_shown
from rich.console import Console


def test_elsewhere_each_window_after_ten_seconds_is_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    console = Console(file=StringIO())
    with windows_shown(console, "colcast loadtest", 3, 5.0) as measured:
        measured("figures")
        assert capsys.readouterr().err == ""
        monkeypatch.setattr("colcast.cli.console._QUIET_SECONDS", 0.0)
        measured("figures")
        assert "window 3 of 3, about 5 s left" in capsys.readouterr().err
        measured("figures")
        assert capsys.readouterr().err == ""


def test_a_terminal_has_a_bar_above_the_figures_that_goes_away():
    screen = StringIO()
    console = Console(file=screen, force_terminal=True, width=80)
    with windows_shown(console, "colcast loadtest", 3, 5.0) as measured:
        assert "0/3" in screen.getvalue()
        measured("figures so far")
        assert "1/3" in screen.getvalue()
        assert "figures so far" in screen.getvalue()
    assert screen.getvalue().endswith("\x1b[2K")  # the last line is erased
