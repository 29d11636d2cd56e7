"""A gRPC server whose answers a test decides, and colcast's own with a small model."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from colcast.export import export_saved_model
from colcast.server import ServerProcess
from colcast.zoo import wide

SMALL = wide.Wide(name="small", user_features=7, item_features=5, hidden=(8,))

Handler = Callable[[bytes, grpc.ServicerContext], bytes]


class _Everything(grpc.GenericRpcHandler):
    def __init__(self, handler: Handler) -> None:
        self._handler = grpc.unary_unary_rpc_method_handler(handler)

    def service(self, handler_call_details: Any) -> Any:
        return self._handler


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Starts servers that answer every method by `handler(request bytes, context)`; their target.

    `workers` is how many requests a server works on at once; the others wait.
    """
    servers = []

    def start(handler: Handler, workers: int = 4) -> str:
        server = grpc.server(
            ThreadPoolExecutor(workers),
            handlers=[_Everything(handler)],
            options=[("grpc.max_receive_message_length", -1)],
        )
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        servers.append(server)
        return f"127.0.0.1:{port}"

    yield start
    for server in servers:
        server.stop(grace=None).wait()


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base path of the model `small`: tf.Example, columnar and late signatures."""
    folder = tmp_path_factory.mktemp("served")
    original = wide.ensure(SMALL, folder)
    export_saved_model(
        original / "1", folder / "columnar" / "1", user_features=["user_*"], late=True
    )
    return folder / "columnar"


@pytest.fixture(scope="session")
def served(exported: Path) -> Iterator[ServerProcess]:
    """The native server with the model `small`."""
    with ServerProcess("small", exported) as server:
        yield server
