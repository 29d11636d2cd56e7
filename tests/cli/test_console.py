"""What subcommands print is whole where it is piped."""

import subprocess
import sys
from pathlib import Path

NAME = "user_" + 40 * "long_" + "name"
PRINT = f"""
from colcast.cli.console import report_console
from rich.table import Table
table = Table("input", "value")
table.add_row("{NAME}", "1")
report_console().print(table)
report_console().print("found in {NAME} and {NAME}", highlight=False)
"""


def printed(into: Path, **environment: str) -> str:
    with into.open("w") as file:
        subprocess.run([sys.executable, "-c", PRINT], stdout=file, check=True, env=environment)
    return into.read_text()


def test_names_are_whole_in_a_file(tmp_path: Path):
    text = printed(tmp_path / "out")
    assert sum(line.count(NAME) for line in text.splitlines()) == 3
    assert max(map(len, text.splitlines())) < 600


def test_columns_sets_another_width(tmp_path: Path):
    text = printed(tmp_path / "out", COLUMNS="60")
    assert max(map(len, text.splitlines())) <= 60
