"""The rendered manifests of deploy/kubernetes, checked by schemas and against the built server."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import numpy as np
import pytest
import yaml
from cloudcoil.models.keda.v1alpha1 import ScaledObject
from cloudcoil.models.prometheus_operator.v1 import ServiceMonitor
from colcast.client import RankingClient
from colcast.server import ServerProcess

from .. import models
from ..server.metrics_page import PATH, Metrics
from ..server.servers import server_flags

KUBERNETES = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"
VERSION = "1.33"
FOLDERS = ["base", "overlays/example"]
OWN_SCHEMAS = {"ScaledObject": ScaledObject, "ServiceMonitor": ServiceMonitor}
RENDERERS = [["kustomize", "build"], ["kubectl", "kustomize"]]


def build(folder: Path) -> list[dict[str, Any]]:
    """The manifests of a kustomization; skips the test without a program that renders them."""
    command = next((one for one in RENDERERS if shutil.which(one[0])), None)
    if command is None:
        pytest.skip("neither kustomize nor kubectl is installed")
    done = subprocess.run([*command, folder], check=True, capture_output=True, text=True)
    return list(yaml.safe_load_all(done.stdout))


def one(manifests: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The only manifest of this kind."""
    (found,) = (manifest for manifest in manifests if manifest["kind"] == kind)
    return found


def load(name: str) -> Any:
    return yaml.safe_load((KUBERNETES / f"{name}.yaml").read_text())


def check(manifest: dict[str, Any]) -> None:
    """Checks a manifest against Kubernetes' schema, or against its operator's."""
    model: Any = OWN_SCHEMAS.get(manifest["kind"])
    if model is None:
        kubernetes_validate.validate(manifest, VERSION, strict=True)
        return
    read = model.model_validate(manifest)
    known = read.model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert known == manifest  # `known` lacks fields that are not in the schema


def flags_of(manifests: list[dict[str, Any]]) -> dict[str, str]:
    """The server's flags in the ConfigMap."""
    lines = one(manifests, "ConfigMap")["data"]["server.flags"].splitlines()
    return dict(line[2:].split("=", 1) for line in lines if line.startswith("--"))


@pytest.fixture(params=FOLDERS)
def manifests(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    return build(KUBERNETES / request.param)


def test_rendered_manifests_fit_the_schemas(manifests: list[dict[str, Any]]) -> None:
    autoscaler = load("components/cpu_autoscaler/autoscaler")  # in neither of them
    for manifest in (*manifests, autoscaler):
        check(manifest)
    deployment = one(manifests, "Deployment")
    scalers = [autoscaler, *(it for it in manifests if it["kind"] == "ScaledObject")]
    names = {scaler["spec"]["scaleTargetRef"]["name"] for scaler in scalers}
    assert names == {deployment["metadata"]["name"]}
    assert ("replicas" in deployment["spec"]) == (len(scalers) == 1)  # an autoscaler sets them


def test_the_manifests_agree_with_each_other(manifests: list[dict[str, Any]]) -> None:
    deployment, service = one(manifests, "Deployment"), one(manifests, "Service")
    pod = deployment["spec"]["template"]
    labels = pod["metadata"]["labels"].items()
    selectors = [
        service["spec"]["selector"],
        deployment["spec"]["selector"]["matchLabels"],
        one(manifests, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        one(manifests, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(selector.items() <= labels for selector in selectors)
    (container,) = pod["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert {port["targetPort"] for port in service["spec"]["ports"]} == ports.keys()
    rules = one(manifests, "NetworkPolicy")["spec"]["ingress"]
    assert {port["port"] for rule in rules for port in rule["ports"]} == ports.keys()
    flags = flags_of(manifests)
    assert float(flags["drain_seconds"]) < pod["spec"]["terminationGracePeriodSeconds"]
    assert int(flags["rest_api_port"]) == ports["http"]
    config = one(manifests, "ConfigMap")
    (mounted,) = (v["configMap"]["name"] for v in pod["spec"]["volumes"] if "configMap" in v)
    assert mounted == config["metadata"]["name"] != "colcast-server"
    (folder_of_config,) = (
        mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "config"
    )
    assert container["args"] == [f"--flagfile={folder_of_config}/server.flags"]
    assert flags["monitoring_config_file"] == f"{folder_of_config}/monitoring.config"


def test_prometheus_finds_the_service() -> None:
    manifests = build(KUBERNETES / "overlays/example")
    monitor, service = one(manifests, "ServiceMonitor")["spec"], one(manifests, "Service")
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["endpoints"]
    assert endpoint["path"] == PATH
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    (trigger, _) = one(manifests, "ScaledObject")["spec"]["triggers"]
    job = service["metadata"]["labels"][monitor["jobLabel"]]
    assert f'job="{job}"' in trigger["metadata"]["query"]


def test_the_server_takes_the_rendered_files(
    manifests: list[dict[str, Any]], tmp_path: Path
) -> None:
    """Also checks that the server publishes the metric that the autoscaler reads."""
    flags = flags_of(manifests)
    for name, text in one(manifests, "ConfigMap")["data"].items():
        text = text.replace("/models/", f"{tmp_path}/").replace("/etc/colcast", str(tmp_path))
        (tmp_path / name).write_text(text)
    base_path = tmp_path / Path(flags["model_base_path"]).name
    models.build("weighted", base_path / "1", weight=0.5)
    if "item_table" in flags:
        (tmp_path / Path(flags["item_table"].split(":")[2]).name).mkdir()  # no version yet
    ports = ["--drain_seconds=0", "--rest_api_port=-1"]
    with (
        ServerProcess(flags=[f"--flagfile={tmp_path}/server.flags", *ports]) as server,
        RankingClient(server.target, flags["model_name"], timeout_seconds=120) as client,
    ):
        assert client.rank(items={"x": np.float32([3, 5])}).scores.tolist() == [1.5, 2.5]
        page = {sample.name for sample in Metrics(server).samples}
    asked = load("components/queue_autoscaler/scaled_object")["spec"]["triggers"][0]["metadata"]
    (metric,) = re.findall(r'__name__="([^"]+)"', asked["query"])
    assert metric in page


def test_kserves_runtime_and_service_fit_each_other() -> None:
    """No registry has KServe's schema as a file, so only the container is checked by a schema."""
    runtime, service = load("kserve/serving_runtime"), load("kserve/inference_service")
    spec, model = runtime["spec"], service["spec"]["predictor"]["model"]
    pod = build(KUBERNETES / "base")
    one(pod, "Deployment")["spec"]["template"]["spec"]["containers"] = spec["containers"]
    check(one(pod, "Deployment"))
    (container,) = spec["containers"]
    assert container["name"] == "kserve-container"
    flags = {arg[2:].partition("=")[0] for arg in (*container["args"], *model["args"])}
    assert "drain_seconds" in flags
    assert flags <= server_flags()
    assert model["runtime"] == runtime["metadata"]["name"]
    assert model["protocolVersion"] in spec["protocolVersions"]
    assert model["modelFormat"].items() <= spec["supportedModelFormats"][0].items()
