"""Columnar models of a few lines, in TF1 graph mode like the exporter's flat graphs."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.export import export_saved_model
from colcast.export.convert._features import Feature, Kind
from colcast.export.cut._add_late import add_late_signature
from colcast.export.cut._add_stages import add_stages
from colcast.export.cut._late_report import LateReport
from colcast.export.cut._observed import observe
from colcast.export.cut._stages_report import StagesReport
from colcast.export.trials._rows import Cells, Rows
from tensorflow.core.protobuf import rewriter_config_pb2

from ..models import ranker

v1 = tf.compat.v1
Columns = dict[str, Any]
Run = Callable[[str, Columns], Columns]

WORDS = np.array([b"", b"red", b"green", b"blue", b"never seen before", "größe".encode()], object)


def features_of(columns: Mapping[str, Any]) -> list[Feature]:
    """The features of columns, which map names to dtype and shape; all are the items'."""
    found = []
    for name, (dtype, shape) in columns.items():
        if name.endswith("/length"):
            continue
        kind, inner = Kind.FIXED_LEN, shape
        if shape[:1] == [None]:
            listed = f"{name}/length" in columns
            kind, inner = (Kind.VAR_LEN if listed else Kind.FIXED_LEN_SEQUENCE), shape[1:]
        found.append(Feature(name, kind, tf.as_dtype(dtype).name, tuple(inner)))
    return found


def marked(features: Iterable[Feature], side: str, names: Collection[str]) -> list[Feature]:
    """The features, those with these names in another domain."""
    return [replace(f, side=side) if f.name in names else f for f in features]


def generated(features: Sequence[Feature], rows: int, random: np.random.Generator) -> Rows:
    """Rows that reveal differences: zeros, negative numbers, large ids, empty and full lists."""
    longest = int(random.integers(1, 6))
    made = {}
    for feature in features:
        steps = 1 if feature.kind is Kind.FIXED_LEN else longest
        shape = (rows, steps * feature.size)
        counts = np.full(rows, shape[1])
        if feature.kind is Kind.VAR_LEN:
            counts = random.integers(0, longest + 1, rows)
        if feature.dtype == "string":
            values = random.choice(WORDS, shape)
        elif feature.dtype == "int64":
            large = random.integers(-(2**62), 2**62, shape)
            values = np.where(random.random(shape) < 0.5, random.integers(-3, 30, shape), large)
        else:
            some_zero = random.random(shape) < 0.9
            values = (random.normal(size=shape) * some_zero).astype(np.float32)
        made[feature.name] = Cells(values, counts)
    return Rows(features, made)


def variable(name: str, *shape: int) -> Any:
    """A variable of random numbers that is not initialised yet."""
    normal = v1.random_normal_initializer(stddev=0.5)
    return v1.get_variable(name, shape, initializer=normal, use_resource=True)


def run_signature(session: Any, signature: Any, columns: Columns) -> Columns:
    """The outputs of a signature; columns that are missing have their default."""
    feeds = {
        info.name: columns[key] if key in columns else tf.make_ndarray(signature.defaults[key])
        for key, info in signature.inputs.items()
    }
    fetches = {key: info.name for key, info in signature.outputs.items()}
    outputs: Columns = session.run(fetches, feeds)
    return outputs


@contextmanager
def running(version: Path, rewrites: str = "") -> Iterator[Run]:
    """A function that runs a SavedModel's signatures, as a server loads them.

    `rewrites` sets all of TensorFlow's graph optimizers, even those that are off by default, but
    for mixed precision, which crashes TensorFlow 2.20 on some CPUs.
    """
    config, kinds = v1.ConfigProto(), rewriter_config_pb2.RewriterConfig
    options = config.graph_options.rewrite_options
    for field in options.DESCRIPTOR.fields if rewrites else ():
        is_toggle = field.enum_type and field.enum_type.name == "Toggle"
        if is_toggle and "mixed_precision" not in field.name:
            setattr(options, field.name, getattr(kinds, rewrites))
        options.min_graph_nodes, options.meta_optimizer_iterations = -1, kinds.TWO
    session = v1.Session(graph=tf.Graph(), config=config)
    with closing(session):
        with session.graph.as_default():
            signatures = v1.saved_model.load(session, ["serve"], str(version)).signature_def
        yield lambda name, columns: run_signature(session, signatures[name], columns)


# Other options are passed to `observe`.
_LATE_OPTIONS = ("late_signature", "least_gain")


class Model:
    """A columnar model, and the late signature made from it.

    Attributes:
        report: the report of the late signature.
        meta_graph: the MetaGraphDef with both signatures.
    """

    def __init__(
        self,
        build: Callable[[dict[str, Any]], dict[str, Any]],
        columns: Mapping[str, tuple[Any, list[int | None]]],
        user: list[str],
        only_zero: Sequence[str] = (),
        **options: Any,
    ) -> None:
        """Builds the model and adds the late signature.

        Args:
            build: makes outputs by name from placeholders by name.
            columns: dtype and shape (without rows) of every input.
            user: the features of the user.
            only_zero: columns that are 0 in all generated rows.
            options: for observe and add_late_signature.
        """
        self._random = np.random.default_rng(0)
        self._only_zero = only_zero
        self._exact = options.pop("exact", False)
        with tf.Graph().as_default() as graph:
            v1.set_random_seed(1)
            self.placeholders = {
                name: v1.placeholder(dtype, [None, *shape], name=name.replace("/", "_"))
                for name, (dtype, shape) in columns.items()
            }
            outputs = build(self.placeholders)
            self.session = v1.Session(graph=graph)
            self.session.run([v1.global_variables_initializer(), v1.tables_initializer()])
            self.meta_graph = v1.train.export_meta_graph(graph=graph)
            signature = self.meta_graph.signature_def["columnar"]
            signature.method_name = "tensorflow/serving/predict"
            for infos, tensors in (
                (signature.inputs, self.placeholders),
                (signature.outputs, outputs),
            ):
                for name, tensor in tensors.items():
                    infos[name].CopyFrom(v1.saved_model.build_tensor_info(tensor))
        self.before = type(self.meta_graph)()
        self.before.CopyFrom(self.meta_graph)
        late = {name: options.pop(name) for name in _LATE_OPTIONS if name in options}
        self.features = marked(features_of(columns), "user", user)
        rows = options.pop("rows", self.drawn)
        self.observed = observe(
            self.meta_graph, self.session, features=self.features, rows=rows, **options
        )
        if self._exact:
            self.observed = self.observed.exactly()
        self.report: LateReport = add_late_signature(self.meta_graph, self.observed, **late)

    def drawn(self, count: int) -> Rows:
        """Generated rows of every feature."""
        rows = generated(self.features, count, self._random)
        zero = {n: Cells(rows.cells[n].padded * 0, rows.cells[n].counts) for n in self._only_zero}
        return Rows(self.features, {**rows.cells, **zero})

    def rows(self, count: int) -> Columns:
        """Generated rows as columns."""
        return self.drawn(count).columns()

    def add_stages(
        self,
        domains: Mapping[str, Collection[str]] = MappingProxyType({}),
        context: Collection[str] = (),
        **options: Any,
    ) -> StagesReport:
        """Adds the stages; `domains` and `context` name features that are not the items'."""
        features = marked(self.features, "candidate", context)
        for domain, names in domains.items():
            features = marked(features, domain, names)
        rows = options.pop("rows", self.drawn)
        return add_stages(self.meta_graph, self.observed, features=features, rows=rows, **options)

    def run(self, signature: str, columns: Columns) -> Columns:
        """The outputs of a signature."""
        return run_signature(self.session, self.meta_graph.signature_def[signature], columns)

    def ops(self, folder: str) -> list[str]:
        """The types of the late signature's ops in one name scope of its graph."""
        prefix = f"columnar_late/{folder}/"
        return [n.op for n in self.meta_graph.graph_def.node if n.name.startswith(prefix)]

    def constant_shapes(self) -> list[list[int]]:
        """The shapes of the late signature's own constants."""
        return [
            [dim.size for dim in node.attr["value"].tensor.tensor_shape.dim]
            for node in self.meta_graph.graph_def.node
            if node.name.startswith("columnar_late/const/")
        ]

    def check(self, rows: tuple[int, ...] = (1, 2, 3, 11, 200)) -> None:
        """Compares both signatures at row counts that the export did not use, bit for bit if exact.

        Repeats this after new weights are assigned, because the late graph must not contain
        weights.
        """
        self._compare(rows)
        self.retrain()
        self._compare(rows)

    def retrain(self) -> None:
        """Changes the variables, like a checkpoint of a later training."""
        with self.session.graph.as_default():
            for each in v1.global_variables():
                if each.dtype.base_dtype == tf.float32:
                    value = self._random.normal(0, 0.5, each.shape).astype(np.float32)
                    self.session.run(each.initializer, {each.initializer.inputs[1]: value})

    def _compare(self, rows: tuple[int, ...]) -> None:
        user = set(self.report.user_features)
        for count in rows:
            columns = self.rows(count)
            once = {name: c[:1] if name in user else c for name, c in columns.items()}
            repeated = {n: c[:1].repeat(count, 0) if n in user else c for n, c in columns.items()}
            expected, given = self.run("columnar", repeated), self.run("columnar_late", once)
            for name, value in expected.items():
                assert given[name].shape == value.shape, name
                if value.dtype.kind == "f" and not self._exact:
                    np.testing.assert_allclose(given[name], value, rtol=1e-4, atol=1e-5)
                else:
                    np.testing.assert_array_equal(given[name], value)


@pytest.fixture(scope="session")
def model() -> type[Model]:
    """A function that builds a columnar model and its late signature."""
    return Model


@pytest.fixture(scope="session", params=["", "ON", "AGGRESSIVE"])
def rewritten(request: Any, base_path: Path) -> Iterator[Run]:
    """A function that runs the ranker's signatures, whatever TensorFlow's optimizers do."""
    with running(base_path / "1", request.param) as run:
        yield run


@pytest.fixture(scope="session")
def base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base path of the ranker's late export; the original is beside it."""
    folder = tmp_path_factory.mktemp("late")
    ranker.save(folder / "model")
    export_saved_model(
        folder / "model",
        folder / "ranker" / "1",
        user_features=["user_*"],
        late=True,
        exact="always",
        warmup=[1, 5],
    )
    return folder / "ranker"


class Staged:
    """A model to which stages were added."""

    def __init__(self, built: Model, **options: Any) -> None:
        """Adds the stages; `options` are those of `Model.add_stages`."""
        self.built = built
        self.report = built.add_stages(**options)
        self.signatures = built.meta_graph.signature_def

    def run(self, stage: str, columns: Columns) -> Columns:
        """Runs a stage on the columns that it takes."""
        return run_signature(self.built.session, self.signatures[f"columnar_{stage}"], columns)

    def columns_of(self, domain: str) -> set[str]:
        """The columns that a stage takes."""
        return set(self.signatures[f"columnar_{domain}"].inputs)

    def check(self, candidates: int, counts: Mapping[str, int], columns: Columns) -> None:
        """Compares stages with the model; candidates share `counts` random rows of each domain."""
        random = np.random.default_rng(candidates)
        given, repeated = dict[str, Any](), dict(columns)
        domains = [d for d in self.report.domains if d != "item"]
        for domain in domains:
            count = counts.get(domain, 1)
            own = {name: columns[name][:count] for name in self.columns_of(domain)}
            index = random.integers(0, count, candidates)
            given |= self.run(domain, own)
            given |= {f"row_to_{domain}": index, f"{domain}_state/row": np.arange(count)}
            repeated |= {name: column[index] for name, column in own.items()}
        given |= self.run("item", columns) | {
            name: columns[name] for name in self.report.context_features
        }
        expected = self.built.run("columnar", repeated)
        for name, value in self.run("pair", given).items():
            np.testing.assert_allclose(value, expected[name], rtol=2e-4, atol=1e-5)
