"""Fixtures for the built server."""

import re
import subprocess

from colcast.server import find_executable


def server_flags() -> set[str]:
    """The names of the server's own flags."""
    listed = subprocess.run([find_executable(), "--help"], capture_output=True, text=True).stdout
    return set(re.findall(r"^ +--(\w+) \(", listed, re.MULTILINE))
