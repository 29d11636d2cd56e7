"""`colcast export`: adds columnar signatures to a SavedModel."""

import gc
import importlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import click
from colcast.cli.console import report_console, showing_progress
from colcast.cli.options import Command, Number, removed, section
from colcast.export._collection import uncollected

_MEASURE_SECONDS = 1.0  # seconds of CPU time
_FILE = click.Path(path_type=Path)
_model = section("Model")
_features = section("Features")
_late = section("Late expansion and stages, with --late")
_proof = section("Proof")
_written = section("Also written")

op_library = section("Model")(
    "--op-library",
    type=_FILE,
    multiple=True,
    metavar="SO",
    help="Library with custom ops of the model; not needed for TF Text and Decision Forests;"
    " repeatable.",
)


json_option = section("Options")(
    "--json", is_flag=True, help="Print JSON, in colcast.json's format, instead of tables."
)


def print_json(values: Mapping[str, Any]) -> None:
    click.echo(json.dumps(values, indent=2, ensure_ascii=False))


def signature_option(text: str) -> Callable[..., Any]:
    return _model(
        "--signature",
        "signatures",
        multiple=True,
        metavar="NAME[=NEW]",
        default=["serving_default"],
        help=f"{text}; repeatable.",
    )


def user_features_option(text: str) -> Callable[..., Any]:
    return _features(
        "--user-features", several=True, metavar="PATTERN...", help=f"{text}, such as 'user_*'."
    )


def domain_option(text: str) -> Callable[..., Any]:
    return _features(
        "--domain",
        "domains",
        several=True,
        metavar="NAME=PATTERN...",
        help=f"{text}, such as shop='shop_*'; repeatable.",
        callback=lambda context, parameter, values: _by_domain(values),
    )


def _by_domain(values: Sequence[str]) -> dict[str, list[str]]:
    """Groups patterns by domain; a value without `NAME=` belongs to the previous value's domain."""
    found: dict[str, list[str]] = {}
    last = ""
    for value in values:
        name, equals, pattern = value.partition("=")
        last, pattern = (name, pattern) if equals else (last, value)
        if not last or not pattern:
            raise click.BadParameter(f"{value!r}: expected NAME=PATTERN, such as shop='shop_*'")
        found.setdefault(last, []).append(pattern)
    return found


@click.command(cls=Command)
@_model(
    "--saved-model", type=_FILE, required=True, metavar="IN", help="Folder with saved_model.pb."
)
@_model(
    "--output", type=_FILE, required=True, metavar="OUT", help="Folder to write; must not exist."
)
@signature_option(
    "A signature to convert: the first becomes `columnar`, others `columnar_NAME`, unless NEW is"
    " given"
)
@op_library
@user_features_option(
    "Features that are the same on every row of a request (`auto`: those for which this holds in"
    " every request of --examples)"
)
@domain_option(
    "Features of another domain, a kind of row that several candidates of a request share (`user`"
    " and `candidate` mean --user-features and --context-features; all other features are `item`)"
)
@_late(
    "--late",
    is_flag=True,
    help="Also add `columnar_late`, which computes the user's part once per request,"
    " `columnar_exact`, which does so only where scores stay bit-identical, and the stages"
    " `columnar_user`, `columnar_item`, `columnar_NAME` for each --domain, and `columnar_pair`,"
    " whose results a server can cache.",
)
@_late(
    "--context-features",
    several=True,
    metavar="PATTERN...",
    help="Features that depend on both user and item, or on the moment: position, distance.",
)
@_late(
    "--exact",
    type=click.Choice(["auto", "always"]),
    default="auto",
    help="Write `columnar_exact` only if it was measured to be faster, or always.",
)
@_proof(
    "--max-relative-difference",
    "tolerance",
    type=Number(min=0),
    default=1e-5,
    metavar="X",
    help="Largest difference of an output of the late signature, relative to the value.",
)
@removed("--tolerance", "--max-relative-difference has the same meaning")
@_proof(
    "--examples",
    type=_FILE,
    metavar="FILE",
    help="TFRecord file of recorded tf.Examples, PredictRequests or PredictionLogs, on which scores"
    " are compared in addition to generated rows; - is standard input.",
)
@_written(
    "--make-default",
    is_flag=False,
    flag_value="columnar",
    metavar="[NEW]",
    help="Make a new signature serving_default (without NEW: columnar); the old one is kept as"
    " serving_examples.",
)
@_model(
    "--unserved-signatures",
    several=True,
    metavar="NAME...",
    help="Signatures that no server of the model serves (--unserved_signatures there): variables"
    " that only they write count as constants.",
)
@_written(
    "--table-type",
    metavar="int8",
    help="Also write the float32 tables of 1 MiB or more in this type, for servers with"
    " --graph_optimization=fast to map.",
)
@_written(
    "--warmup",
    type=click.IntRange(min=1),
    several=True,
    metavar="ROWS...",
    help="Write warm-up requests with these numbers of rows.",
)
@removed("--verbose", "colcast inspect OUT prints every feature, op and tensor", is_flag=True)
@json_option
def command(
    saved_model: Path,
    output: Path,
    signatures: Sequence[str],
    op_library: Sequence[Path],
    make_default: str | None,
    examples: Path | None,
    json: bool,
    **options: Any,
) -> None:
    """Writes a copy of a SavedModel with additional signatures that take columns.

    `columnar` takes one tensor per feature instead of serialized tf.Examples. With --late,
    signatures that already take tensors are converted, too.
    """
    if options["context_features"] and not options["late"]:
        raise click.UsageError("--context-features name inputs of the last stage: add --late")
    silence_tensorflow()
    from colcast.export import ExportError, export_saved_model, load_op_libraries

    try:
        with (
            uncollected(),
            showing_progress("colcast export") as progress,
            _read(examples) as recorded,
        ):
            load_op_libraries(op_library)
            report = export_saved_model(
                saved_model,
                output,
                signatures=signatures,
                default=make_default,
                examples=recorded,
                measure_seconds=_MEASURE_SECONDS,
                progress=progress,
                **options,
            )
            gc.freeze()  # exempts the graphs' many objects from the collection at exit
    except (ExportError, OSError) as error:
        raise click.ClickException(str(error)) from error
    if json:
        print_json({"saved_model": report.saved_model, "output": report.output, **report.to_json()})
    else:
        report.print(report_console())


@contextmanager
def _read(examples: Path | None) -> Iterator[Path | None]:
    """Yields the path; for `-`, a copy of standard input, since TensorFlow cannot read pipes."""
    if examples != Path("-"):
        yield examples
        return
    with NamedTemporaryFile(suffix=".tfrecord") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
        yield Path(copy.name)


def silence_tensorflow() -> None:
    """Keeps TensorFlow's informational messages off the console; errors are still raised."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        with uncollected():
            _import_without_keras()
            gc.freeze()  # TensorFlow's objects stay until the process ends
            import tensorflow as tf
            from colcast.export.graph._sessions import session_config

            tf.get_logger().setLevel("ERROR")
            with tf.Graph().as_default(), tf.compat.v1.Session(config=session_config()) as session:
                session.run(tf.constant(0))  # the first run of a process logs messages about MLIR
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)


def _import_without_keras() -> None:
    """Imports TensorFlow but not Keras, which TensorFlow loads only to register optimizers.

    TensorFlow works without Keras, which can still be imported afterwards.
    """
    optimizers = "keras.src.optimizers"
    if {"tensorflow", optimizers} & sys.modules.keys():
        return
    sys.modules[optimizers] = None  # type: ignore[assignment]
    try:
        importlib.import_module("tensorflow")
    finally:
        del sys.modules[optimizers]
