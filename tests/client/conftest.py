"""A schema for building requests, and a server that answers from a script."""

import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from colcast.client import ClientSettings, ModelSchema, RankingClient, Signature, Target, TensorSpec
from colcast.client.columns._dtypes import BY_NAME
from colcast.client.request._request import RequestOptions, build_request
from colcast.server import ServerProcess
from grpc_health.v1 import health_pb2_grpc
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import get_model_metadata_pb2, predict_pb2

from ..models import build


def spec(name: str, dtype: str, *shape: int | None) -> TensorSpec:
    return TensorSpec(name, BY_NAME[dtype], shape)


def signature(name: str, *inputs: TensorSpec, **defaults: Any) -> Signature:
    """A Predict signature with these inputs and one output, `scores`."""
    return Signature(
        name,
        {each.name: each for each in inputs},
        {"scores": spec("scores", "float32", None)},
        {key: np.asarray(value) for key, value in defaults.items()},
        "tensorflow/serving/predict",
    )


SPECS = (
    spec("age", "int64", None),
    spec("city", "string", None),
    spec("history", "int64", None, None),
    spec("history/length", "int64", None),
    spec("movie", "int64", None),
    spec("year", "float32", None),
    spec("genres", "string", None, None),
    spec("genres/length", "int64", None),
    spec("vector", "float32", None, 3),
)
CAN = frozenset({"expand", "index", "users", "prefetch"})
"""What colcast's server declares."""

USER_COLUMNS = {"age", "city", "history", "history/length"}


def _late(each: TensorSpec) -> TensorSpec:
    if each.name not in USER_COLUMNS or each.shape is None:
        return each
    return TensorSpec(each.name, each.dtype, (1, *each.shape[1:]))


@pytest.fixture(scope="session")
def schema() -> ModelSchema:
    """A model with user and item features of every kind, and a default for `year`."""
    year = np.array([1990.0], np.float32)
    return ModelSchema(
        "movies",
        3,
        {
            "serving_default": signature("serving_default", spec("examples", "string", None)),
            "columnar": signature("columnar", *SPECS, year=year),
            "columnar_late": signature("columnar_late", *map(_late, SPECS), year=year),
        },
        can=CAN,
    )


@pytest.fixture
def parts(schema: ModelSchema) -> ModelSchema:
    """The model as exported with stages, so its results are proved not to depend on padding."""
    pair = signature("columnar_pair", spec("row_to_user", "int64", None))
    return replace(schema, signatures={**schema.signatures, pair.name: pair})


USER = {"age": 31, "city": "Łódź", "history": [1, 2, 3]}
ITEMS = [
    {"movie": 7, "year": 2001.0, "genres": ["Drama"], "vector": [1.0, 2.0, 3.0]},
    {"movie": 9, "year": 1984.0, "genres": [], "vector": [4.0, 5.0, 6.0]},
    {"movie": 11, "genres": ["War", "Noir"], "vector": [7.0, 8.0, 9.0]},
]
COLUMNS = {name: [{"year": 1990.0, **item}[name] for item in ITEMS] for name in ITEMS[0]}
"""The items by column, with the default of `year`."""

OTHER = {"age": 47, "city": "Gdańsk", "history": [5]}
ALL: tuple[Target, ...] = ("late", "columnar", "stock", "repeated")

Handler = Callable[[bytes, grpc.ServicerContext], bytes]


def request_options(
    model: str = "movies", target: Target = "auto", **settings: Any
) -> RequestOptions:
    """The options of a client that has these settings, for servers that accept every request."""
    once = {name: settings.pop(name) for name in ("output_filter", "late") if name in settings}
    return RequestOptions(ClientSettings("127.0.0.1:1", model, **settings), target, **once)


def message(schema: ModelSchema, inputs: Any, target: Target = "auto", **options: Any) -> Any:
    """Builds a request; returns it as parsed by protobuf."""
    built = build_request(schema, inputs, request_options("movies", target, **options))
    return predict_pb2.PredictRequest.FromString(built.message)


def arrays(request: Any) -> dict[str, Any]:
    """Input name -> nested list, read as TensorFlow's runtime reads the tensors."""
    return {
        name: tf.io.parse_tensor(tensor.SerializeToString(), tensor.dtype).numpy()
        for name, tensor in request.inputs.items()
    }


class ScriptedServer:
    """A gRPC server whose answers a test writes: method name -> handler of raw bytes."""

    def __init__(
        self, handlers: dict[str, Handler], credentials: Any = None, health: Any = None
    ) -> None:
        self.health = health
        self.requests: list[tuple[str, bytes, dict[str, Any]]] = []
        self._lock = threading.Lock()
        self._server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
        methods = {
            name: grpc.unary_unary_rpc_method_handler(self._recorded(name, handler))
            for name, handler in handlers.items()
        }
        service = "tensorflow.serving.PredictionService"
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, methods),)
        )
        if health is not None:
            health_pb2_grpc.add_HealthServicer_to_server(health, self._server)
        if credentials is None:
            port = self._server.add_insecure_port("127.0.0.1:0")
        else:
            port = self._server.add_secure_port("127.0.0.1:0", credentials)
        self.port = port
        self.address = f"127.0.0.1:{port}"
        self._server.start()

    def _recorded(self, name: str, handler: Handler) -> Handler:
        def handle(request: bytes, context: grpc.ServicerContext) -> bytes:
            with self._lock:
                self.requests.append((name, request, dict(context.invocation_metadata())))
            return handler(request, context)

        return handle

    def count(self, name: str) -> int:
        return sum(called == name for called, _, _ in self.requests)

    @property
    def predicts(self) -> list[Any]:
        """The PredictRequests received so far, in order."""
        parse = predict_pb2.PredictRequest.FromString
        return [parse(body) for name, body, _ in self.requests if name == "Predict"]

    def stop(self) -> None:
        """Stops without waiting for calls."""
        self._server.stop(None).wait()


def client_of(*servers: Any, **settings: Any) -> RankingClient:
    """A client of these servers, with time enough on a loaded machine."""
    addresses = [server.address for server in servers]
    return RankingClient(addresses, "movies", **{"timeout_seconds": 120, **settings})


def described(schema: ModelSchema, context: grpc.ServicerContext, version: int = 3) -> bytes:
    """The answer to GetModelMetadata, with the trailer of a server that can do something."""
    if schema.can:
        context.set_trailing_metadata((("x-colcast-can", ",".join(sorted(schema.can))),))
    return metadata(schema, version)


def metadata(schema: ModelSchema, version: int = 3) -> bytes:
    """The GetModelMetadataResponse of a schema, built with protobuf."""
    signatures = get_model_metadata_pb2.SignatureDefMap()
    for name, signature in schema.signatures.items():
        found = meta_graph_pb2.SignatureDef(method_name=signature.method)
        for specs, target in ((signature.inputs, found.inputs), (signature.outputs, found.outputs)):
            for key, spec in specs.items():
                target[key].dtype = spec.dtype.number
                target[key].tensor_shape.CopyFrom(tf.TensorShape(spec.shape).as_proto())
        for key, default in signature.defaults.items():
            found.defaults[key].CopyFrom(tf.make_tensor_proto(default))
        signatures.signature_def[name].CopyFrom(found)
    response = get_model_metadata_pb2.GetModelMetadataResponse()
    response.model_spec.name = schema.model
    response.model_spec.version.value = version
    response.metadata["signature_def"].Pack(signatures)
    return response.SerializeToString()


def scores(request: bytes, version: int = 3) -> bytes:
    """The answer to a request: each movie's id is its score."""
    movies = predict_pb2.PredictRequest.FromString(request).inputs["movie"]
    response = predict_pb2.PredictResponse()
    response.model_spec.version.value = version
    response.outputs["scores"].CopyFrom(
        tf.make_tensor_proto(tf.make_ndarray(movies).astype(np.float32))
    )
    return response.SerializeToString()


def unavailable_until(attempt: int, answer: Any) -> Any:
    """A handler that answers UNAVAILABLE until its n-th call."""
    calls = iter(range(1, 1_000_000))

    def handle(request: bytes, context: grpc.ServicerContext) -> bytes:
        if next(calls) < attempt:
            context.abort(grpc.StatusCode.UNAVAILABLE, "warming up")
        answered: bytes = answer(request, context)
        return answered

    return handle


def without_late(schema: ModelSchema) -> ModelSchema:
    """The schema of the model exported without --late."""
    kept = {name: each for name, each in schema.signatures.items() if name != "columnar_late"}
    return replace(schema, signatures=kept)


def stock(schema: ModelSchema) -> ModelSchema:
    """The schema as stock TensorFlow Serving describes the model."""
    return replace(schema, can=frozenset())


@pytest.fixture
def scripted() -> Iterator[Callable[..., ScriptedServer]]:
    """Starts scripted servers and stops them after the test."""
    servers: list[ScriptedServer] = []

    def start(credentials: Any = None, health: Any = None, **handlers: Handler) -> ScriptedServer:
        servers.append(ScriptedServer(handlers, credentials, health))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def serves(scripted: Any, schema: ModelSchema) -> Callable[..., ScriptedServer]:
    """Starts a scripted server of a model; it answers with `scores` unless `predict` is given."""

    def start(
        model: ModelSchema = schema, predict: Handler | None = None, **more: Any
    ) -> ScriptedServer:
        handlers: dict[str, Handler] = {
            "GetModelMetadata": lambda _, context: described(model, context),
            "Predict": predict or (lambda request, _: scores(request)),
        }
        server: ScriptedServer = scripted(**{**handlers, **more})
        return server

    return start


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base path of the model `movies`."""
    path = tmp_path_factory.mktemp("movies")
    build("movies", path / "1")
    return path


@pytest.fixture(scope="session")
def server(models: Path) -> Iterator[ServerProcess]:
    """A real server of `movies`."""
    with ServerProcess("movies", models) as started:
        yield started
