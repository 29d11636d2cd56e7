"""docs/versions.md, Canary: 5 % of users by label or by Envoy, the comparison, and the way back."""

import copy
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent
from typing import Any
from zlib import crc32

import grpc
import pytest
import yaml
from colcast.cli.main import main
from colcast.client import RankingClient
from colcast.server import ServerProcess
from tensorflow_serving.apis import prediction_service_pb2_grpc

from .. import models
from ..server.servers import FAST, Stubs
from ..waiting import wait_until
from .test_envoy import CONFIGURATION, ENVOY, envoy_before, plain_request, start

PAGE = (Path(__file__).resolve().parents[2] / "docs/versions.md").read_text()
SECTION = PAGE[PAGE.index("## Canary") : PAGE.index("## Rollback")]
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


def weighted(weights: tuple[int, int]) -> Any:
    """deploy/envoy's configuration after the page's change, with these weights."""
    changed = copy.deepcopy(CONFIGURATION)["static_resources"]
    clusters = changed["clusters"]
    clusters += [copy.deepcopy(one) | {"name": f"{one['name']}_canary"} for one in clusters]
    for one in clusters:
        one["load_assignment"]["cluster_name"] = one["name"]
    page = yaml.safe_load(block("yaml"))
    for cluster, weight in zip(page["weighted_clusters"]["clusters"], weights, strict=True):
        cluster["weight"] = weight
    (host,) = changed["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"][
        "route_config"
    ]["virtual_hosts"]
    (route,) = (one["route"] for one in host["routes"] if "route" in one)
    del route["cluster"]
    route |= page
    return {**CONFIGURATION, "static_resources": changed}


@pytest.mark.skipif(not ENVOY.exists(), reason="envoy is not installed")
@pytest.mark.parametrize("weights", [(95, 5), (100, 0)], ids=["canary", "back"])
def test_users_by_envoys_weights(tmp_path: Path, weights: tuple[int, int]) -> None:
    assert yaml.safe_load(block("yaml"))["weighted_clusters"]["clusters"][1]["weight"] == 5
    stable, canary = (start(tmp_path, version) for version in (1, 2))
    with ExitStack() as stack:
        stack.callback(lambda: [server.kill() for server in (stable, canary)])
        envoy = stack.enter_context(
            envoy_before([stable], tmp_path / "envoy", [canary], weighted(weights))
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
        assert abs(share - weights[1] / 100) < 0.015
        assert [version(user) for user in range(100)] == answered[:100]
