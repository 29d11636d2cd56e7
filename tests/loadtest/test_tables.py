"""What a terminal and a document show of the figures."""

from dataclasses import replace
from io import StringIO

from colcast.loadtest.side_by_side import Line
from colcast.loadtest.tables import (
    figures_table,
    markdown_head,
    markdown_rows,
    milliseconds,
    share,
    side_by_side_table,
)
from rich.console import Console

from .measured import FAST, LINES, SLOW

NAN = float("nan")


def printed(table: object) -> str:
    console = Console(width=80, record=True, file=StringIO())
    console.print(table)
    return console.export_text()


def test_the_comparison_fits_a_terminal_of_80_columns():
    text = printed(side_by_side_table(LINES, "wide"))
    assert "…" not in text
    late = next(line for line in text.splitlines() if "user late" in line)
    assert late.split() == [
        "user",
        "late",
        "2.00",
        "25",
        "%",
        "215,070",
        "7.00",
        "20.0",
        "100",
        "6e-07",
    ]


def test_errors_get_a_column_when_there_are_any():
    broken = Line(500, "late", replace(FAST, errors=3), FAST, 0.0)
    assert "errors" not in printed(side_by_side_table(LINES, ""))
    assert "errors" in printed(side_by_side_table([LINES[0], broken], ""))


def test_the_figures_of_a_run_fit_too():
    text = printed(figures_table([("stock example", SLOW), ("colcast late", FAST)]))
    assert "…" not in text
    assert "25 %" in text


def test_a_document_gets_a_row_a_size():
    head = markdown_head(["example", "late"])
    (row,) = markdown_rows("wide", LINES)
    assert head.splitlines()[0].count("|") == row.count("|")
    assert row == "| wide | 500 | 8.00 | 2.00 | 25 % | 9 % | 12.0 | 3.00 | 6e-07 |"


def test_what_was_not_measured_is_a_dash():
    assert (milliseconds(NAN), share(NAN, 1.0), share(1.0, NAN), share(1.0, 0.0)) == ("-",) * 4


def test_small_times_have_more_digits():
    assert [milliseconds(value) for value in (0.123, 9.876, 98.76)] == ["0.12", "9.88", "98.8"]
