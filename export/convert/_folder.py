"""Reads the graph of a SavedModel folder, writes copies of folders, and loads signatures."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tensorflow as tf
from colcast.export.convert._flatten import flatten
from colcast.export.graph._errors import ExportError
from colcast.export.graph._nodes import NodeDef, needed_for, producer
from colcast.export.graph._sessions import session_config
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.saved_model.loader_impl import get_asset_tensors

GRAPH_FILE = "saved_model.pb"
_TEXT_FILE, _CHUNKED_FILE = "saved_model.pbtxt", "saved_model.cpb"
_FINGERPRINT = "fingerprint.pb"
_RESTORED = "colcast_restored"  # a no-op that waits for the variables
_MOST_BYTES = (1 << 31) - 1  # protobuf's limit on a message


def read_saved_model(folder: Path) -> Any:
    """Returns the SavedModel proto of a folder.

    Raises:
      ExportError: no readable SavedModel is there; the message says what was found instead.
    """
    check_graph_file(folder)
    file = folder / GRAPH_FILE
    saved_model = saved_model_pb2.SavedModel()
    try:
        saved_model.ParseFromString(file.read_bytes())
    except DecodeError as error:
        raise ExportError(f"{file}: not a SavedModel, or damaged ({error})") from error
    if not saved_model.meta_graphs:
        raise ExportError(f"{file}: holds no MetaGraph")
    return saved_model


def check_graph_file(folder: Path) -> None:
    """Raises ExportError, saying what was found instead, if the folder is not a SavedModel."""
    if not folder.is_dir():
        raise ExportError(f"{folder}: no such folder")
    if not (folder / GRAPH_FILE).exists():
        raise ExportError(f"{folder}: {_what_else(folder)}")


def choose_meta_graph(saved_model: Any, tags: Sequence[str]) -> Any:
    """The MetaGraphDef with exactly these tags; ExportError if there is none."""
    for meta_graph in saved_model.meta_graphs:
        if set(meta_graph.meta_info_def.tags) == set(tags):
            return meta_graph
    found = ["{" + ", ".join(m.meta_info_def.tags) + "}" for m in saved_model.meta_graphs]
    raise ExportError(f"no MetaGraph has the tags {{{', '.join(tags)}}}; found {', '.join(found)}")


@contextmanager
def loaded(
    folder: Path, meta_graph: Any, signatures: Iterable[str], executor: str = ""
) -> Iterator[Any]:
    """A session with some signatures of a SavedModel: their graph, variables and tables.

    The graph has no other nodes, because TensorFlow copies it for each new set of fetches. Nor does
    it call a function to restore variables, because TensorFlow copies functions, too.

    Args:
      folder: the SavedModel's folder, from which variables and assets are read.
      meta_graph: its MetaGraphDef.
      signatures: names of the signatures.
      executor: TensorFlow's name of the executor; empty for the default one.
    """
    initial = initial_ops(meta_graph)[:1]
    assets = get_asset_tensors(str(folder), meta_graph)
    saver = meta_graph.saver_def
    restored = (folder / "variables" / "variables.index").exists() and saver.restore_op_name
    restoring = _restoring(meta_graph, saver.restore_op_name) if restored else []
    names = [*initial, *assets, *([_RESTORED, saver.filename_tensor_name] if restored else [])]
    for signature in map(meta_graph.signature_def.__getitem__, signatures):
        names += [info.name for info in (*signature.inputs.values(), *signature.outputs.values())]
    with (
        tf.Graph().as_default() as graph,
        tf.compat.v1.Session(graph=graph, config=session_config(executor)) as session,
    ):
        producers = meta_graph.meta_info_def.stripped_op_list
        needed = needed_for(meta_graph.graph_def, names, restoring)
        tf.import_graph_def(needed, name="", producer_op_list=producers)
        if restored:
            session.run(
                _RESTORED, {saver.filename_tensor_name: str(folder / "variables/variables")}
            )
        operations = [graph.get_operation_by_name(producer(name)) for name in initial]
        if any(op.type != "NoOp" or op.control_inputs for op in operations):
            session.run(initial, assets)
        yield session


def _restoring(meta_graph: Any, restore_op: str) -> list[NodeDef]:
    """The nodes that restore the variables, and a no-op that waits for all of them."""
    flat = flatten(meta_graph, [restore_op])
    ends = [*map(producer, flat.tensors.values()), *flat.effects]
    waiting = NodeDef(name=_RESTORED, op="NoOp", input=[f"^{end}" for end in dict.fromkeys(ends)])
    return [*flat.nodes.values(), waiting]


def initial_ops(meta_graph: Any) -> list[str]:
    """The ops that initialize a model's tables; a loader runs the first one."""
    signature = meta_graph.signature_def.get("__saved_model_init_op")
    found = [info.name for info in signature.outputs.values()] if signature is not None else []
    for key in ("saved_model_main_op", "legacy_init_op"):
        if key in meta_graph.collection_def:
            found += meta_graph.collection_def[key].node_list.value
    return found


@contextmanager
def written_beside(source: Path, output: Path) -> Iterator[Path]:
    """Yields a copy of a SavedModel folder without its graph; on success the copy becomes `output`.

    Until then the copy is a temporary folder beside `output`, removed on failure.

    Raises:
      ExportError: `output` exists and is not an empty folder, or is inside `source`.
    """
    if output.exists() and not (output.is_dir() and not any(output.iterdir())):
        raise ExportError(f"{output} exists already; name another output, or remove it")
    if output.resolve().is_relative_to(source.resolve()):
        raise ExportError(f"{output} is inside the model to export; choose an output outside it")
    output.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
    unfinished = beside / output.name
    try:
        ignored = shutil.ignore_patterns(GRAPH_FILE, _FINGERPRINT)
        shutil.copytree(source, unfinished, ignore=ignored)
        yield unfinished
        if output.exists():
            output.rmdir()
        unfinished.rename(output)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def write_graph(folder: Path, saved_model: Any) -> None:
    """Writes the graph and its fingerprint into a folder that already has all other files."""
    check_size(saved_model)
    (folder / GRAPH_FILE).write_bytes(saved_model.SerializeToString(deterministic=True))
    fingerprint = _fingerprint(folder)
    if fingerprint:
        (folder / _FINGERPRINT).write_bytes(fingerprint)


def check_size(saved_model: Any) -> None:
    """Raises ExportError if the graph is too large for its file."""
    size = saved_model.ByteSize()
    if size > _MOST_BYTES:
        raise ExportError(
            f"the graph with its new signatures has {size / 2**30:.2f} GB, but {GRAPH_FILE} holds"
            " at most 2 GB; move large constants into variables or asset files"
        )


def versions(base: Path) -> list[Path]:
    """The subfolders that are named by a number and hold a SavedModel, in ascending order."""
    found = [p for p in base.iterdir() if p.name.isdecimal() and (p / GRAPH_FILE).exists()]
    return sorted(found, key=lambda folder: int(folder.name))


def variables_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in (folder / "variables").glob("*"))


def _fingerprint(folder: Path) -> bytes | None:
    """TensorFlow's fingerprint of a SavedModel; None if it cannot be computed."""
    try:
        from tensorflow.python.saved_model.pywrap_saved_model import fingerprinting

        return bytes(fingerprinting.CreateFingerprintDef(str(folder)))
    except (ImportError, AttributeError, TypeError, RuntimeError, ValueError):
        return None


def _what_else(folder: Path) -> str:
    for other in (_TEXT_FILE, _CHUNKED_FILE):
        if (folder / other).exists():
            return f"holds {other}, which is not supported; save the model with {GRAPH_FILE}"
    if found := versions(folder):
        names = ", ".join(version.name for version in found)
        return f"holds versions ({names}) instead of {GRAPH_FILE}; name one of them"
    return f"holds no {GRAPH_FILE}, so it is not a SavedModel"
