"""Every flag of the server is in its documentation."""

from pathlib import Path

from .conftest import server_flags

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_flag_is_documented():
    flags = server_flags()
    assert len(flags) > 30
    text = (DOCS / "operations.md").read_text()
    assert {flag for flag in flags if f"--{flag}" not in text} == set()
