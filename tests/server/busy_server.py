"""A server whose only worker is held, so that what comes next waits or finds the queue full."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .. import models
from ..models.gated import Gate
from ..waiting import wait_until
from .metrics_page import Metrics
from .servers import ONE_WAITS, Stubs


class BusyServer(NamedTuple):
    """A server of a gated model whose only worker waits at a gate; one request may wait for it."""

    stubs: Stubs
    gate: Gate
    before: Metrics

    def ask(self, path: Path | None = None, timeout: float = 120) -> Any:
        """A call that is under way; without a file to read it fails as soon as it runs."""
        path = path or self.gate.path.with_name("none")
        request = self.stubs.request({"path": str(path), "x": [1.0]})
        return self.stubs.prediction.Predict.future(request, timeout=timeout)

    def grown(self, name: str, **labels: str) -> float:
        """By how much a sample of the page has grown since the gate was reached."""
        now = Metrics(self.stubs.server).value(name, **labels)
        return now - self.before.value(name, **labels)

    def wait_for_a_queue(self) -> None:
        """Returns once a request waits for the worker."""
        wait_until(lambda: self.grown(":colcast:queue_length") == 1)


@contextlib.contextmanager
def busy_server(folder: Path, serve: Callable[..., Stubs]) -> Iterator[BusyServer]:
    """Who enters it has to open its gate."""
    models.build("gated", folder / "gated" / "1")
    stubs = serve(folder / "gated", *ONE_WAITS)
    gate = Gate(folder / "gate")
    busy = BusyServer(stubs, gate, Metrics(stubs.server))
    running = busy.ask(gate.path)
    wait_until(gate.is_reached)
    yield busy
    assert "Illegal seek" in running.details()  # a pipe is no file
