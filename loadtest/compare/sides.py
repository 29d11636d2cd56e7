"""The sides of a comparison: running servers, versions of a model, or folders to serve."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from colcast.client import Tls
from colcast.client.messages import parse
from colcast.loadtest.measure.meters import Meter, ProcessMeter, listening_process
from colcast.loadtest.measure.series import Series, Target, encoded, label
from colcast.loadtest.send.connection import Request
from colcast.loadtest.send.formats import RequestData
from colcast.server import ServerProcess

_MODEL_FILE = "saved_model.pb"
_WANTED = "expected HOST:PORT, HOST:PORT@VERSION or a folder with a SavedModel or with versions"


@dataclass(frozen=True)
class Side:
    """One side of a comparison.

    Attributes:
      text: the text on the command line.
      address: HOST:PORT of a server; empty for a folder.
      version: the model's version; None if the server chooses.
      folder: a SavedModel, or a base path with a folder per version; None for a server.
    """

    text: str
    address: str = ""
    version: int | None = None
    folder: Path | None = None


@dataclass(frozen=True)
class Served:
    """A side whose server is running.

    Attributes:
      target: the server.
      meter: measures the server, if it runs on this machine.
      folder: the folder of the served version; None for a server that was already running.
    """

    target: Target
    meter: Meter | None
    folder: Path | None = None


def parse_side(text: str) -> Side:
    """Reads HOST:PORT, HOST:PORT@VERSION or the path of a folder."""
    folder = Path(text)
    if folder.is_dir():
        if not (_is_model(folder) or any(map(_is_model, folder.glob("[0-9]*")))):
            raise ValueError(f"{text!r} has neither {_MODEL_FILE} nor a version with one")
        return Side(text, folder=folder.resolve())
    found = re.fullmatch(r"([^@/]+:\d+)(?:@(\d+))?", text)
    if not found:
        raise ValueError(f"{text!r}: {_WANTED}")
    return Side(text, found[1], int(found[2]) if found[2] else None)


@contextmanager
def serving(
    name: str, side: Side, model: str, flags: Sequence[str], tls: Tls | None
) -> Iterator[Served]:
    """Yields the side as a target; a folder is served with these flags until the context ends."""
    if side.folder is None:
        pid = listening_process(side.address)
        meter = ProcessMeter(pid, side.address) if pid else None
        yield Served(Target(name, side.address, tls, side.version), meter)
        return
    with (
        _base_path(side.folder) as base_path,
        ServerProcess(model, base_path, flags) as server,
    ):
        meter = ProcessMeter(server.pid, server.target)
        yield Served(Target(name, server.target), meter, _version(side.folder))


def series_of(
    target: Target, model: str, format_name: str, data: Sequence[RequestData], signature: str | None
) -> Series:
    """Encodes the data for a target in a format.

    Recorded requests stay unchanged, except for the model's name, version and signature.
    """
    written, left_out = encoded(target, model, [format_name], data, signature)
    if left_out:
        raise RuntimeError(f"{label(target, format_name)}: {left_out[0].reason}")
    (series,) = written
    if format_name != "recorded":
        return series
    requests = [_addressed(it, model, target.version, signature) for it in series.requests]
    return replace(series, requests=requests)


def _version(folder: Path) -> Path:
    """The version that a server started for this folder would serve."""
    versions = [it for it in folder.glob("[0-9]*") if it.name.isdigit() and _is_model(it)]
    return folder if _is_model(folder) else max(versions, key=lambda it: int(it.name))


def _is_model(folder: Path) -> bool:
    return (folder / _MODEL_FILE).is_file()


@contextmanager
def _base_path(folder: Path) -> Iterator[Path]:
    """Yields the folder if it is a base path, else a new base path with it as the only version."""
    if not _is_model(folder):
        yield folder
        return
    with TemporaryDirectory() as made:
        base_path = Path(made)
        (base_path / "1").symlink_to(folder)
        yield base_path


def _addressed(request: Request, model: str, version: int | None, signature: str | None) -> Request:
    """Readdresses a PredictRequest to a model; keeps its signature if none is given."""
    addressed = parse("PredictRequest", request.payload)
    spec = addressed.model_spec
    spec.name = model
    if signature:
        spec.signature_name = signature
    spec.ClearField("version")
    spec.ClearField("version_label")
    if version is not None:
        spec.version.value = version
    return replace(request, payload=addressed.SerializeToString())
