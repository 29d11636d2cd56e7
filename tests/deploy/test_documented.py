"""Every flag of the server is in its documentation."""

from pathlib import Path

from .conftest import server_flags

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_flag_is_documented():
    flags = server_flags()
    assert len(flags) > 30
    told = (DOCS / "operations.md").read_text()
    compared = (DOCS / "compatibility.md").read_text()  # those that have no effect here
    missing = {flag for flag in flags if f"--{flag}" not in told and f"`{flag}`" not in compared}
    assert missing == set()
