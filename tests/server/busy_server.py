"""A server whose only worker is held, so that what comes next waits or finds the queue full."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from colcast.server import ServerProcess

from .. import models
from ..models.gated import Gate
from ..waiting import wait_until
from .conftest import Stubs
from .metrics_page import Metrics


class BusyServer(NamedTuple):
    """A server of model "gated" whose only worker waits at a gate; one request may wait for it."""

    server: ServerProcess
    stubs: Stubs
    gate: Gate

    def ask(self, path: Path | None = None, timeout: float = 120) -> Any:
        """A call that is under way; without a file to read it fails as soon as it runs."""
        path = path or self.gate.path.with_name("none")
        request = self.stubs.request({"path": str(path), "x": [1.0]}, name="gated")
        return self.stubs.prediction.Predict.future(request, timeout=timeout)

    def value(self, name: str, **labels: str) -> float:
        """A sample of the page now."""
        return Metrics(self.server).value(name, **labels)

    def wait_for(self, value: float, name: str, **labels: str) -> None:
        """Returns once a sample has that value."""
        wait_until(lambda: self.value(name, **labels) == value)


@contextlib.contextmanager
def busy_server(folder: Path, monitoring: Sequence[str]) -> Iterator[BusyServer]:
    """Who enters it has to open its gate."""
    models.build("gated", folder / "gated" / "1")
    flags = [*monitoring, "--num_workers=1", "--max_queued_requests=1"]
    with ServerProcess("gated", folder / "gated", flags) as server:
        busy = BusyServer(server, Stubs(server.target), Gate(folder / "gate"))
        running = busy.ask(busy.gate.path)
        wait_until(busy.gate.is_reached)
        yield busy
        assert "Illegal seek" in running.details()  # a pipe is no file
