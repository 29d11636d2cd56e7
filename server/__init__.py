"""The native server's launcher: finds the executable, starts it, waits until it serves.

The server itself is the C++ code beside this file; main.cc wires its parts.
"""

from colcast.server._executable import ServerNotBuiltError, find_executable, find_sender
from colcast.server._process import ServerFailedError, ServerProcess

__all__ = [
    "ServerFailedError",
    "ServerNotBuiltError",
    "ServerProcess",
    "find_executable",
    "find_sender",
]
