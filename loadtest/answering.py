"""A process that answers each line on its standard input by one on its output."""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Self


class Answering:
    """Runs while it is entered.

    Attributes:
      pid: the process id, once entered.
    """

    def __init__(self, command: Sequence[Any], environment: Mapping[str, str] = {}) -> None:
        """Takes the command's words and what its environment has beside this process's."""
        self._command = [str(word) for word in command]
        self._environment = {**os.environ, **environment}
        self._resources = ExitStack()
        self.pid = 0

    def ask(self, *words: Any) -> str:
        """The answer to a line of these words.

        Raises:
          ValueError: the process ended; the message is the last line on its standard error.
        """
        assert self._process.stdin
        assert self._process.stdout
        with suppress(BrokenPipeError):
            print(*words, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            self._log.seek(0)
            raise ValueError(self._log.read().strip().rpartition("\n")[-1] or self._command[0])
        return answer

    def __enter__(self) -> Self:
        """Starts the process."""
        self._log = self._resources.enter_context(tempfile.TemporaryFile("w+"))
        self._process = self._resources.enter_context(
            subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
                env=self._environment,
            )
        )
        self.pid = self._process.pid
        return self

    def __exit__(self, *_: object) -> None:
        """Ends it."""
        self._process.kill()
        self._resources.close()
