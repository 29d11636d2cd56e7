"""`colcast serve`: becomes the native server."""

import os
import sys
from collections.abc import Sequence

from colcast.server._executable import ServerNotBuiltError, find_executable


def main(argv: Sequence[str]) -> int:
    """Replaces this process by the server with the same flags; returns only if that fails."""
    try:
        executable = find_executable()
    except ServerNotBuiltError as error:
        print(f"colcast serve: {error}", file=sys.stderr)
        return 1
    os.execv(executable, [str(executable), *argv])
