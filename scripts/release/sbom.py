"""Prints the bill of materials of a release, its wheels and its image, as CycloneDX 1.6 in JSON.

    python scripts/release/sbom.py RELEASE_FOLDER > colcast-VERSION.cdx.json

For the native server, it lists each Debian package whose archives were linked or whose headers were
compiled in, according to the CMake build in build/server, with the version installed here. For both
distributions, it lists the requirements with the versions that the tests use. For the image, it
lists the Debian packages in it.
"""

import hashlib
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "server"
SERVER = ("colcast_model_server", "colcast_engine")
LINKAGE = "colcast:linkage"
# The PyPI packages from which deploy/assemble_runtime.sh copies files into the image.
IN_THE_IMAGE = ("tensorflow-cpu", "tensorflow-text", "ydf-tf")
NAMESPACE = uuid.UUID("9d4be6a6-3f60-5a0e-9b52-3c1f2d3f7a10")


def main(folder: Path) -> None:
    """Prints the bill of materials of the files in `folder`."""
    version = (ROOT / "VERSION").read_text().strip()
    bom = Bom()
    whole = Component(
        type=ComponentType.APPLICATION, name="colcast", version=version, bom_ref="colcast"
    )
    bom.metadata.component = whole
    bom.metadata.timestamp = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC)
    parts = []
    known: dict[str, Component] = {}
    for wheel in sorted(folder.glob("*.whl")):
        part = wheel_component(wheel)
        parts.append(part)
        needs = required(part.name, known)
        if part.name == "colcast-server":
            needs += compiled_in(known)
        add(bom, part, needs)
    for archive in sorted(folder.glob("*.oci.tar")):
        part = image_component(archive, version)
        parts.append(part)
        packages = archive.with_suffix(".packages").read_text().splitlines()
        needs = [debian(*line.split("\t"), known) for line in packages]
        needs += [pypi(name, known, "in the image") for name in IN_THE_IMAGE if is_installed(name)]
        add(bom, part, needs + [one for one in bom.components if one.name == "colcast-server"])
    for component in known.values():
        bom.components.add(component)
        bom.register_dependency(component)
    bom.register_dependency(whole, parts)
    digests = "".join(sorted(str(part.hashes) for part in parts))
    bom.serial_number = uuid.uuid5(NAMESPACE, digests)
    print(JsonV1Dot6(bom).output_as_string(indent=2))


def is_installed(name: str) -> bool:
    return any(importlib.metadata.distributions(name=name))


def add(bom: Bom, component: Component, needs: Iterable[Component]) -> None:
    bom.components.add(component)
    bom.register_dependency(component, needs)


def sha256(path: Path) -> HashType:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return HashType(alg=HashAlgorithm.SHA_256, content=digest)


def wheel_component(wheel: Path) -> Component:
    """One of the project's own distributions."""
    name, version, *_ = parse_wheel_filename(wheel.name)
    return Component(
        type=ComponentType.LIBRARY, name=name, version=str(version), bom_ref=wheel.name,
        purl=PackageURL("pypi", None, name, str(version)), hashes=[sha256(wheel)],
    )  # fmt: skip


def image_component(archive: Path, version: str) -> Component:
    """The server's image."""
    return Component(
        type=ComponentType.CONTAINER, name="colcast-server image", version=version,
        bom_ref=archive.name, hashes=[sha256(archive)],
    )  # fmt: skip


def required(name: str, known: dict[str, Component]) -> list[Component]:
    """The distributions that `name` requires, directly or not, with their installed versions."""
    found: list[Component] = []
    seen, waiting = set(), [Requirement(name)]
    if name == "colcast-server":  # not installed in the build environment, and requires nothing
        return []
    while waiting:
        wanted = waiting.pop()
        key = canonicalize_name(wanted.name)
        if key == "wheel":  # not in the lock file, since nothing imports it
            continue
        if key in seen or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        seen.add(key)
        waiting += map(Requirement, importlib.metadata.requires(key) or [])
        if key != "colcast":
            found.append(pypi(key, known))
    return found


def pypi(name: str, known: dict[str, Component], linkage: str = "installed beside it") -> Component:
    """A distribution from PyPI with its installed version."""
    version = importlib.metadata.version(name)
    purl = PackageURL("pypi", None, name, version)
    return known.setdefault(
        str(purl),
        Component(
            type=ComponentType.LIBRARY,
            name=name,
            version=version,
            purl=purl,
            bom_ref=str(purl),
            properties=[Property(name=LINKAGE, value=linkage)],
        ),
    )


def compiled_in(known: dict[str, Component]) -> list[Component]:
    """The Debian packages whose code is compiled or linked into the server and its engine."""
    archives, headers = linked_archives(), included_headers()
    of_archives = owners(archives)
    components = []
    for package in sorted(of_archives | owners(headers)):
        query = "-f=${Package}\t${Version}\t${Architecture}"
        fields = run("dpkg-query", "-W", query, package).split("\t")
        component = debian(*fields, known)
        linkage = "linked statically" if package in of_archives else "headers compiled in"
        component.properties.add(Property(name=LINKAGE, value=linkage))
        components.append(component)
    return components


def debian(name: str, version: str, architecture: str, known: dict[str, Component]) -> Component:
    release = platform.freedesktop_os_release()
    distro = f"{release['ID']}-{release['VERSION_ID']}"
    qualifiers = {"arch": architecture, "distro": distro}
    purl = PackageURL("deb", "debian", name, version, qualifiers)
    return known.setdefault(
        str(purl),
        Component(
            type=ComponentType.LIBRARY, name=name, version=version, purl=purl, bom_ref=str(purl)
        ),
    )


def linked_archives() -> set[str]:
    """The archives outside the build folder that the linker used."""
    links = [line for line in run("ninja", "-C", BUILD, "-t", "commands", *SERVER).splitlines()
             if " -o " in line and " -c " not in line]  # fmt: skip
    named = set(re.findall(r"-l:(\S+\.a)", "\n".join(links)))
    folder = Path(run("c++", "-print-file-name=libc.a").strip()).resolve().parent
    paths = {str(folder / name) for name in named}
    return paths | set(re.findall(r"(?<=\s)(/usr/\S+\.a)", "\n".join(links)))


def included_headers() -> set[str]:
    """The headers in /usr that the objects of the server and its engine include."""
    inputs = run("ninja", "-C", BUILD, "-t", "inputs", *SERVER).split()
    objects = [path for path in inputs if path.endswith(".o")]
    headers = set()
    for line in run("ninja", "-C", BUILD, "-t", "deps", *objects).splitlines():
        if line.startswith("    /usr/"):
            headers.add(os.path.realpath(line.strip()))
    return headers


def owners(paths: set[str]) -> set[str]:
    """The Debian packages that contain these files."""
    found = run("dpkg-query", "-S", *sorted(paths))
    return {line.partition(": ")[0] for line in found.splitlines() if not line.startswith("divers")}


def run(*command: object) -> str:
    return subprocess.run(
        [str(word) for word in command], check=True, capture_output=True, text=True
    ).stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))
