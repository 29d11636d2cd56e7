"""Every flag of the server is in its documentation."""

import re
import subprocess
from pathlib import Path

from colcast.server import find_executable

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_flag_is_documented():
    listed = subprocess.run([find_executable(), "--help"], capture_output=True, text=True).stdout
    flags = set(re.findall(r"^ +--(\w+) \(", listed, re.MULTILINE))
    assert len(flags) > 30
    text = (DOCS / "operations.md").read_text()
    assert {flag for flag in flags if f"--{flag}" not in text} == set()
