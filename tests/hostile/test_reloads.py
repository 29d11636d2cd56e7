"""Reloads over the network: no client can write a file of its choice, or turn a log on."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from colcast.server import ServerProcess
from tensorflow_serving.apis import get_model_status_pb2, model_management_pb2, predict_pb2
from tensorflow_serving.apis import model_service_pb2_grpc as model_grpc

from .conftest import RawClient, make_good_request

LINE = "* * * * * root reboot\n"


def reload_that_logs(base_path: Path, prefix: str) -> model_management_pb2.ReloadConfigRequest:
    """A request to reload the served model and to log all of its requests."""
    request = model_management_pb2.ReloadConfigRequest()
    model = request.config.model_config_list.config.add(
        name="target", base_path=str(base_path), model_platform="tensorflow"
    )
    model.logging_config.log_collector_config.filename_prefix = prefix
    model.logging_config.sampling_config.sampling_rate = 1.0
    return request


def reload_code(target: str, request: model_management_pb2.ReloadConfigRequest) -> str:
    """The code that answers a reload; the model's status is always told."""
    with grpc.insecure_channel(target) as channel:
        stub = model_grpc.ModelServiceStub(channel)
        status = get_model_status_pb2.GetModelStatusRequest()
        status.model_spec.name = "target"
        assert stub.GetModelStatus(status, timeout=60).model_version_status
        return str(stub.HandleReloadConfigRequest.future(request, timeout=60).code().name)


def send_line(server: ServerProcess) -> predict_pb2.PredictResponse:
    """Sends a request that would put a line of the client's choice into a log."""
    request = make_good_request()
    request.inputs["title"].string_val[0] = LINE.encode()
    client = RawClient(server)
    answer = client.send(request.SerializeToString())
    client.close()
    return answer


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture(name="serve")
def serve_with_logs(tmp_path, base_path):
    """A function that serves the model; `with_directory` allows logs below tmp_path / "logs"."""
    (tmp_path / "logs").mkdir()

    @contextmanager
    def serve(with_directory: bool, *flags: str) -> Iterator[ServerProcess]:
        given = [f"--request_log_directory={tmp_path / 'logs'}"] if with_directory else []
        with ServerProcess("target", base_path, [*given, *flags]) as server:
            yield server

    return serve


REFUSALS = ("INVALID_ARGUMENT", "FAILED_PRECONDITION")
PREFIXES = ["cron.d/job\0", "job\n", "\x1b[2Jjob", "logs/../job", "..", "job", "logs", "logsjob"]


@pytest.mark.parametrize("with_directory", [True, False])
def test_no_file_is_written_where_a_client_asks(serve, base_path, tmp_path, with_directory):
    (tmp_path / "cron.d").mkdir()
    with serve(with_directory) as server:
        for prefix in [*PREFIXES, *([] if with_directory else ["logs/target"])]:
            request = reload_that_logs(base_path, f"{tmp_path}/{prefix}")
            assert reload_code(server.target, request) in REFUSALS, prefix
        assert send_line(server).outputs
    assert files_below(tmp_path) == []


@pytest.mark.parametrize("prefix", ["target", "{0}/logs/target"])
def test_below_the_directory_logs_are_written(serve, base_path, tmp_path, prefix):
    with serve(True) as server:
        assert (
            reload_code(server.target, reload_that_logs(base_path, prefix.format(tmp_path))) == "OK"
        )
        assert send_line(server).outputs
    (file,) = files_below(tmp_path)
    assert file.parent == tmp_path / "logs"
    assert file.name.startswith("target-")


def addresses_of_this_host() -> list[str]:
    """This host's addresses, without the loopback interface's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # UDP: sends nothing
        except OSError:
            return []
        address = str(probe.getsockname()[0])
    return [] if address.startswith("127.") else [address]


@pytest.mark.parametrize(
    ("access", "here", "elsewhere"),
    [
        ("on", "OK", "OK"),
        ("local", "OK", "PERMISSION_DENIED"),
        ("off", "UNIMPLEMENTED", "UNIMPLEMENTED"),
    ],
)
def test_who_may_reload_is_the_operators_choice(
    serve, base_path, tmp_path, monkeypatch, access, here, elsewhere
):
    monkeypatch.chdir(tmp_path)  # paths of sockets must be short
    request = reload_that_logs(base_path, "")
    request.config.model_config_list.config[0].ClearField("logging_config")
    flags = ["--host=0.0.0.0", "--grpc_socket_path=s", f"--model_service={access}"]
    with serve(False, *flags) as server:
        port = server.target.rpartition(":")[2]
        for target in (f"127.0.0.1:{port}", "unix:s"):
            assert reload_code(target, request) == here
        for address in addresses_of_this_host():
            assert reload_code(f"{address}:{port}", request) == elsewhere
