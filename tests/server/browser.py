"""Headless Chromium, controlled over a pipe (chromedevtools.github.io/devtools-protocol)."""

import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


class Page:
    """A browser tab.

    Attributes:
      requested: the URLs that the page has fetched since it was opened.
      complaints: the page's console output and uncaught exceptions since then.
    """

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to_browser, self._from_browser = to_browser, from_browser
        self._ids = itertools.count(1)
        self._received = b""
        self._session: str | None = None
        self.requested: list[str] = []
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Calls a method of the protocol; records events that arrive in the meantime."""
        message: dict[str, Any] = {"id": next(self._ids), "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == message["id"]:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def open(self, url: str) -> None:
        """Opens a URL and waits until it is loaded; forgets the previous page's events."""
        self.call("Page.navigate", url="about:blank")
        assert self.wait_for("location.href === 'about:blank'")
        self.requested.clear()
        self.complaints.clear()
        self.call("Page.navigate", url=url)
        assert self.wait_for(
            "document.readyState === 'complete' && location.href !== 'about:blank'"
        )

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; if it is a promise, waits for its value."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, condition: str, seconds: float = 30) -> bool:
        """Waits until a JavaScript expression is true; returns False if it is not in time."""
        return bool(
            self.evaluate(
                f"new Promise(done => {{ const end = Date.now() + {seconds * 1000};"
                f" const look = () => {{ if ({condition}) done(true);"
                " else if (Date.now() > end) done(false); else setTimeout(look, 50); }; look(); })"
            )
        )

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._received:
            chunk = os.read(self._from_browser, 1 << 16)
            assert chunk, "the browser is gone"
            self._received += chunk
        message, _, self._received = self._received.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requested.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(params["exceptionDetails"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(str(params["args"]))
        elif method == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """Starts a browser; yields a tab."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs chromium (Debian package chromium)")
    child_reads, to_browser = os.pipe()
    from_browser, child_writes = os.pipe()
    # Chromium reads the protocol from file descriptor 3 and writes to 4.
    script = f'exec "$0" "$@" 3<&{child_reads} 4>&{child_writes}'
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
    process = subprocess.Popen(
        ["bash", "-c", script, chromium, *flags, f"--user-data-dir={profile}"],
        pass_fds=(child_reads, child_writes),
        stderr=subprocess.DEVNULL,
    )
    os.close(child_reads)
    os.close(child_writes)
    try:
        yield Page(to_browser, from_browser)
    finally:
        os.close(to_browser)
        process.terminate()
        process.wait(30)
        os.close(from_browser)
