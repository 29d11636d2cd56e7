"""Where the server's executable lies."""

import importlib.util
import os
from pathlib import Path

_NAME = "colcast_model_server"
_VARIABLE = "COLCAST_MODEL_SERVER"


class ServerNotBuiltError(RuntimeError):
    """The executable is nowhere it is looked for; the message says where that is."""


def find_executable() -> Path:
    """Returns the path of colcast_model_server.

    Looked for in $COLCAST_MODEL_SERVER, in the installed distribution colcast-server, and in the
    build folder of the checkout this file belongs to, in this order.

    Raises:
      ServerNotBuiltError: it is in none of them, or the variable names no executable file.
    """
    named = os.environ.get(_VARIABLE)
    if named:
        if os.access(named, os.X_OK) and Path(named).is_file():
            return Path(named)
        raise ServerNotBuiltError(f"{_VARIABLE}={named} is not an executable file")
    candidates = [Path(__file__).resolve().parent.parent / "build" / "server" / "bin" / _NAME]
    candidates[:0] = _installed()
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    places = ", ".join(str(candidate) for candidate in candidates)
    raise ServerNotBuiltError(
        f"{_NAME} not found in {places}: pip install colcast-server, or `make setup` in a checkout"
    )


def _installed() -> list[Path]:
    """Where the installed distribution has it; nothing if it is not installed."""
    spec = importlib.util.find_spec("colcast_server")
    folders = spec.submodule_search_locations if spec else None
    return [Path(folder) / "bin" / _NAME for folder in (folders or ())]
