"""Whether the TensorFlow beside the installed server is the one that it was built for."""

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path

_SERVER = "colcast-server"
_NEEDED = re.compile(r"(tensorflow-cpu)\s*==\s*([\w.]+)")
_KINDS = ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tf-nightly")
_LIBRARY = "libtensorflow_cc.so.2"
_SAY_VERSION = """
import ctypes, sys
version = ctypes.CDLL(sys.argv[1]).TF_Version
version.restype = ctypes.c_char_p
print(version().decode())
"""


def wrong_tensorflow() -> str | None:
    """What was found, what is wanted, and the commands that mend it; None if nothing is wrong.

    Several distributions install the same folder `tensorflow`, and pip lets the last one overwrite
    the others. A server that is not installed, but built in a checkout, is not looked at.
    """
    wanted = _wanted()
    found = {name: of for name in _KINDS if (of := _version(name))}
    if wanted is None or set(found.values()) == {wanted[1]}:
        return None
    name, needed = wanted
    mend = f"pip install --force-reinstall --no-deps {name}=={needed}"
    if not found:
        return f"TensorFlow {needed} is not installed, which the server was built for: {mend}"
    loaded = _loaded_version()
    if loaded == needed:
        return None  # its files are there, whatever else was installed before
    others = [other for other in found if other != name]
    if others:
        mend = f"pip uninstall -y {' '.join(others)} && {mend}"
    installed = ", ".join(f"{other} {of}" for other, of in found.items())
    return (
        f"the server was built for TensorFlow {needed}, found {loaded or 'none that loads'}"
        f" (installed: {installed}): {mend}; tensorflow-serving-api brings another TensorFlow"
        " along: pip install --no-deps tensorflow-serving-api"
    )


def _wanted() -> tuple[str, str] | None:
    """The distribution and the version that the installed server asks for."""
    try:
        asked = requires(_SERVER) or []
    except PackageNotFoundError:
        return None
    matches = (_NEEDED.match(one) for one in asked)
    return next(((match[1], match[2]) for match in matches if match), None)


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _loaded_version() -> str | None:
    """The version that TensorFlow's library says of itself; None if it cannot be loaded."""
    spec = find_spec("tensorflow")
    folders = spec.submodule_search_locations if spec else None
    library = str(Path((folders or ["."])[0], _LIBRARY))
    run = [sys.executable, "-c", _SAY_VERSION, library]  # it logs to standard error as it loads
    said = subprocess.run(run, capture_output=True, text=True, check=False)
    return said.stdout.strip() or None
