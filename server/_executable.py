"""Finds the executables of the server and of the load generator."""

import importlib.util
import os
from pathlib import Path

_SERVER, _SENDER = "colcast_model_server", "colcast_sender"
_VARIABLE = "COLCAST_MODEL_SERVER"


class ServerNotBuiltError(RuntimeError):
    """The executable was not found; the message names the places that were searched."""


def find_executable() -> Path:
    """Returns the path of colcast_model_server.

    Searches $COLCAST_MODEL_SERVER, the installed distribution colcast-server, and the build folder
    of the checkout that contains this file, in this order.

    Raises:
      ServerNotBuiltError: it is in none of them, or the variable does not name an executable file.
    """
    named = os.environ.get(_VARIABLE)
    if not named:
        return _find(_SERVER, _folders())
    if os.access(named, os.X_OK) and Path(named).is_file():
        return Path(named)
    raise ServerNotBuiltError(f"{_VARIABLE}={named} is not an executable file")


def find_sender() -> Path:
    """Returns the path of colcast_sender. Searches the same folders as `find_executable`.

    Raises:
      ServerNotBuiltError: it is in none of those folders.
    """
    named = os.environ.get(_VARIABLE)
    beside = [Path(named).parent] if named else []
    return _find(_SENDER, beside + _folders())


def _find(name: str, folders: list[Path]) -> Path:
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    places = ", ".join(str(folder) for folder in folders)
    raise ServerNotBuiltError(
        f"{name} not found in {places}: install the wheel colcast_server-*.whl of the same release,"
        " or call `make setup` in a checkout"
    )


def _folders() -> list[Path]:
    """The bin folders of the installed distribution, if there is one, and of the checkout."""
    spec = importlib.util.find_spec("colcast_server")
    installed = spec.submodule_search_locations if spec else None
    checkout = Path(__file__).resolve().parent.parent / "build" / "server"
    return [Path(folder) / "bin" for folder in (*(installed or ()), checkout)]
