"""gRPC's standard services: health, and reflection for clients without .proto files."""

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from tensorflow_serving.apis import model_service_pb2, prediction_service_pb2

Status = health_pb2.HealthCheckResponse
PREDICTION = "tensorflow.serving.PredictionService"
MODELS = "tensorflow.serving.ModelService"
HEALTH = "grpc.health.v1.Health"
INFERENCE = "inference.GRPCInferenceService"
REFLECTION = "grpc.reflection.v1alpha.ServerReflection"
CHECKED = ("", PREDICTION, MODELS, INFERENCE)
UNKNOWN = "tensorflow.serving.NoSuchService"
MODEL_FILES = ["tensorflow_serving/apis/model.proto", "google/protobuf/wrappers.proto"]


@pytest.fixture
def channel(server):
    with grpc.insecure_channel(server.target) as channel:
        yield channel


@pytest.fixture
def health(channel):
    return health_pb2_grpc.HealthStub(channel)


def asked(service: str = "") -> health_pb2.HealthCheckRequest:
    return health_pb2.HealthCheckRequest(service=service)


def test_checks_and_watches_are_answered_for_the_server_and_by_service(health):
    for service in CHECKED:
        assert health.Check(asked(service), timeout=120).status == Status.SERVING
        watch = health.Watch(asked(service), timeout=120)
        assert next(watch).status == Status.SERVING
        watch.cancel()
    statuses = health.List(health_pb2.HealthListRequest(), timeout=120).statuses
    listed = {name: each.status for name, each in statuses.items()}
    assert listed == dict.fromkeys(CHECKED, Status.SERVING)


def test_an_unknown_service_is_not_found_and_may_be_watched(health):
    with pytest.raises(grpc.RpcError) as raised:
        health.Check(asked(UNKNOWN), timeout=120)
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND
    watch = health.Watch(asked(UNKNOWN), timeout=120)
    assert next(watch).status == Status.SERVICE_UNKNOWN
    assert watch.is_active()
    watch.cancel()


@pytest.fixture
def reflected(channel):
    """The descriptors that the server publishes."""
    return ProtoReflectionDescriptorDatabase(channel)


@pytest.fixture
def answers(channel):
    """A function that asks on one stream, each question a dict of fields; returns the answers."""

    def ask(*questions):
        requests = [reflection_pb2.ServerReflectionRequest(**question) for question in questions]
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        responses = list(stub.ServerReflectionInfo(iter(requests), timeout=120))
        assert [response.original_request for response in responses] == requests
        return responses

    return ask


def files_in(response):
    """The names of the files that a response describes."""
    files = response.file_descriptor_response.file_descriptor_proto
    return [FileDescriptorProto.FromString(file).name for file in files]


def signatures(methods: list[MethodDescriptor]) -> set[tuple[str, str, str]]:
    return {(one.name, one.input_type.full_name, one.output_type.full_name) for one in methods}


def test_every_service_is_listed_with_the_methods_of_its_proto(reflected):
    published = {
        PREDICTION: prediction_service_pb2,
        MODELS: model_service_pb2,
        HEALTH: health_pb2,
        REFLECTION: reflection_pb2,
    }
    assert sorted(reflected.get_services()) == sorted([*published, INFERENCE])
    pool = DescriptorPool(reflected)
    for service, protos in published.items():
        wanted = protos.DESCRIPTOR.services_by_name[service.rpartition(".")[2]]
        assert signatures(pool.FindServiceByName(service).methods) == signatures(wanted.methods)


def test_a_call_with_only_reflection_messages_is_answered(reflected, channel):
    pool = DescriptorPool(reflected)
    method = pool.FindServiceByName(MODELS).methods_by_name["GetModelStatus"]
    request = GetMessageClass(method.input_type)()
    request.model_spec.name = "ranker"
    call = channel.unary_unary(
        f"/{MODELS}/GetModelStatus",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    (status,) = call(request, timeout=120).model_version_status
    assert status.version == 3


def test_a_file_is_found_by_its_name_and_contents_with_those_it_imports(answers):
    name = "tensorflow.serving.ModelSpec"
    *found, service, extensions = answers(
        {"file_by_filename": MODEL_FILES[0]},
        {"file_containing_symbol": name},
        {"file_containing_symbol": f"{name}.version_label"},
        {"file_containing_symbol": MODELS},
        {"all_extension_numbers_of_type": name},
    )
    assert [files_in(response) for response in found] == [MODEL_FILES] * 3
    names = files_in(service)
    assert names[0] == "tensorflow_serving/apis/model_service.proto"
    assert set(MODEL_FILES) < set(names)
    assert len(names) == len(set(names))
    assert extensions.all_extension_numbers_response.base_type_name == name
    assert not extensions.all_extension_numbers_response.extension_number


OF_OPTIONS = {"containing_type": "google.protobuf.FieldOptions", "extension_number": 123456}


@pytest.mark.parametrize(
    ("question", "code", "words"),
    [
        ({"file_by_filename": "no/such.proto"}, "NOT_FOUND", "File not found"),
        ({"file_containing_symbol": "no.Such"}, "NOT_FOUND", "Symbol not found"),
        ({"all_extension_numbers_of_type": "no.Such"}, "NOT_FOUND", "Type not found"),
        ({"file_containing_extension": OF_OPTIONS}, "NOT_FOUND", "Extension not found"),
        ({"host": "a"}, "UNIMPLEMENTED", ""),
    ],
)
def test_an_unknown_name_is_answered_and_the_stream_continues(answers, question, code, words):
    response, after = answers(question, {"file_by_filename": MODEL_FILES[0]})
    assert response.error_response.error_code == grpc.StatusCode[code].value[0]
    assert words in response.error_response.error_message
    assert files_in(after) == MODEL_FILES


def test_a_stream_without_questions_ends_well(answers):
    assert answers() == []


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (f"{HEALTH}/Check", b"\x0a\x05abc"),
        (f"{HEALTH}/Watch", b"\x0a\x02\xff\xfe"),
        (f"{HEALTH}/Watch", None),
        (f"{REFLECTION}/ServerReflectionInfo", b"\x22\x05abc"),
    ],
)
def test_bytes_that_are_no_message_end_the_call(channel, health, method, message):
    sent = [] if message is None else [message]
    if method.startswith(REFLECTION):  # the questions before it are answered
        question = reflection_pb2.ServerReflectionRequest(file_by_filename=MODEL_FILES[0])
        sent = [question.SerializeToString(), *sent]
    call = channel.stream_stream(f"/{method}")(iter(sent), timeout=120)
    for _ in sent[1:]:
        assert next(call)
    with pytest.raises(grpc.RpcError) as raised:
        next(call)
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    if message is not None:
        assert "malformed" in raised.value.details()
    assert health.Check(asked(), timeout=120).status == Status.SERVING
