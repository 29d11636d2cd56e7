"""A server whose only worker is busy, so later requests wait or find the queue full."""

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
    """A server of a gated model whose only worker waits at a gate; one request more may wait."""

    stubs: Stubs
    gate: Gate
    before: Metrics

    def ask(self, path: Path | None = None, timeout: float = 120) -> Any:
        """Starts a call; without a file to read, it fails as soon as it runs."""
        path = path or self.gate.path.with_name("none")
        request = self.stubs.request({"path": str(path), "x": [1.0]})
        return self.stubs.prediction.Predict.future(request, timeout=timeout)

    def grown(self, name: str, **labels: str) -> float:
        """The increase of a sample of the metrics page since the gate was reached."""
        now = Metrics(self.stubs.server).value(name, **labels)
        return now - self.before.value(name, **labels)

    def wait_for_a_queue(self) -> None:
        """Returns once a request waits for the worker."""
        wait_until(lambda: self.grown(":colcast:queue_length") == 1)


@contextlib.contextmanager
def held_worker(
    folder: Path, serve: Callable[..., Stubs], *flags: str
) -> Iterator[tuple[Stubs, Gate]]:
    """A gate at which the only worker of a server with these flags waits until it is opened."""
    models.build("gated", folder / "gated" / "1")
    stubs, gate = serve(folder / "gated", *flags), Gate(folder / "gate")
    request = stubs.request({"path": str(gate.path), "x": [1.0]})
    running = stubs.prediction.Predict.future(request, timeout=300)
    wait_until(gate.is_reached)
    yield stubs, gate
    assert "Illegal seek" in running.details()  # TensorFlow does not accept a pipe as a file


@contextlib.contextmanager
def busy_server(folder: Path, serve: Callable[..., Stubs]) -> Iterator[BusyServer]:
    """Holds the worker until the caller opens the gate."""
    with held_worker(folder, serve, *ONE_WAITS) as (stubs, gate):
        yield BusyServer(stubs, gate, Metrics(stubs.server))
