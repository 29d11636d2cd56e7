"""The result of `kubectl kustomize` for deploy/kubernetes; supports only the fields used there."""

import hashlib
import json
from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]

_KNOWN = {
    *("apiVersion", "kind", "resources", "components"),
    *("configMapGenerator", "images", "patches"),
}


def build(folder: Path) -> list[Manifest]:
    """The manifests of a kustomization, as they would be applied.

    Raises:
        ValueError: a kustomization has a field that this renderer does not support.
    """
    manifests = _build(folder)
    for manifest in manifests:
        if manifest["kind"] == "ConfigMap":
            _name_by_content(manifest, manifests)
    return manifests


def _build(folder: Path, manifests: list[Manifest] | None = None) -> list[Manifest]:
    """A kustomization's manifests; a component changes the given ones."""
    asked = yaml.safe_load((folder / "kustomization.yaml").read_text())
    if unknown := asked.keys() - _KNOWN:
        raise ValueError(f"{folder}: not known: {', '.join(sorted(unknown))}")
    manifests = manifests or []
    for name in asked.get("resources", ()):
        path = folder / name
        more = _build(path) if path.is_dir() else list(yaml.safe_load_all(path.read_text()))
        manifests += more
    for name in asked.get("components", ()):
        manifests = _build(folder / name, manifests)
    for generator in asked.get("configMapGenerator", ()):
        _generate(generator, folder, manifests)
    for image in asked.get("images", ()):
        _rename_image(image, manifests)
    for patch in asked.get("patches", ()):
        _patch(patch, manifests)
    return manifests


def one(manifests: list[Manifest], kind: str, name: str = "colcast-server") -> Manifest:
    """The manifest of this kind and name."""
    (found,) = (
        m for m in manifests if m["kind"] == kind and m["metadata"]["name"].startswith(name)
    )
    return found


def _generate(generator: Manifest, folder: Path, manifests: list[Manifest]) -> None:
    data = {name: (folder / name).read_text() for name in generator["files"]}
    if generator.get("behavior") == "merge":
        one(manifests, "ConfigMap", generator["name"])["data"].update(data)
    else:
        metadata = {"name": generator["name"]}
        manifests.append(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        )


def _name_by_content(config_map: Manifest, manifests: list[Manifest]) -> None:
    """Names a ConfigMap after its content, so that a change restarts pods."""
    name = config_map["metadata"]["name"]
    digest = hashlib.sha256(json.dumps(config_map["data"]).encode()).hexdigest()[:10]
    config_map["metadata"]["name"] = f"{name}-{digest}"
    for deployment in (m for m in manifests if m["kind"] == "Deployment"):
        for volume in deployment["spec"]["template"]["spec"]["volumes"]:
            if volume.get("configMap", {}).get("name") == name:
                volume["configMap"]["name"] = f"{name}-{digest}"


def _rename_image(image: Manifest, manifests: list[Manifest]) -> None:
    for deployment in (m for m in manifests if m["kind"] == "Deployment"):
        for container in deployment["spec"]["template"]["spec"]["containers"]:
            if container["image"].partition(":")[0] == image["name"]:
                container["image"] = f"{image['newName']}:{image['newTag']}"


def _patch(patch: Manifest, manifests: list[Manifest]) -> None:
    """Applies a JSON patch (RFC 6902)."""
    target: Any = one(manifests, patch["target"]["kind"], patch["target"]["name"])
    for step in yaml.safe_load(patch["patch"]):
        *path, last = step["path"].strip("/").split("/")
        place = target
        for key in path:
            place = place[int(key) if isinstance(place, list) else key]
        last = int(last) if isinstance(place, list) else last
        _ = place[last]  # raises if the value does not exist
        if step["op"] == "remove":
            del place[last]
        elif step["op"] == "replace":
            place[last] = step["value"]
        else:
            raise ValueError(f"not known: {step['op']}")
