"""gRPC reflection: a client without .proto files finds services and calls them."""

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from tensorflow_serving.apis import model_service_pb2, prediction_service_pb2

PREDICTION = "tensorflow.serving.PredictionService"
MODELS = "tensorflow.serving.ModelService"
HEALTH = "grpc.health.v1.Health"
INFERENCE = "inference.GRPCInferenceService"
REFLECTION = "grpc.reflection.v1alpha.ServerReflection"

MODEL_FILES = ["tensorflow_serving/apis/model.proto", "google/protobuf/wrappers.proto"]


@pytest.fixture
def reflected(server):
    """The descriptors that the server publishes."""
    with grpc.insecure_channel(server.target) as channel:
        yield ProtoReflectionDescriptorDatabase(channel)


@pytest.fixture
def reflection(server):
    with grpc.insecure_channel(server.target) as channel:
        yield reflection_pb2_grpc.ServerReflectionStub(channel)


def answers(reflection, *questions):
    """Sends questions, each a dict of the request's fields, on one stream; returns the answers."""
    requests = [reflection_pb2.ServerReflectionRequest(**question) for question in questions]
    responses = list(reflection.ServerReflectionInfo(iter(requests), timeout=120))
    assert [response.original_request for response in responses] == requests
    return responses


def files_in(response):
    """The names of the files that a response describes."""
    files = response.file_descriptor_response.file_descriptor_proto
    return [FileDescriptorProto.FromString(file).name for file in files]


def test_every_service_is_listed(reflected):
    services = (PREDICTION, MODELS, INFERENCE, REFLECTION, HEALTH)
    assert sorted(reflected.get_services()) == sorted(services)


@pytest.mark.parametrize(
    ("service", "protos"),
    [
        (PREDICTION, prediction_service_pb2),
        (MODELS, model_service_pb2),
        (HEALTH, health_pb2),
        (REFLECTION, reflection_pb2),
    ],
)
def test_the_methods_are_those_of_the_protos(reflected, service, protos):
    found = DescriptorPool(reflected).FindServiceByName(service)
    wanted = protos.DESCRIPTOR.services_by_name[service.rpartition(".")[2]]
    assert signatures(found.methods) == signatures(wanted.methods)


def signatures(methods: list[MethodDescriptor]) -> set[tuple[str, str, str]]:
    return {(one.name, one.input_type.full_name, one.output_type.full_name) for one in methods}


def test_a_call_with_only_reflection_messages_is_answered(reflected, server):
    pool = DescriptorPool(reflected)
    method = pool.FindServiceByName(MODELS).methods_by_name["GetModelStatus"]
    request = GetMessageClass(method.input_type)()
    request.model_spec.name = "ranker"
    with grpc.insecure_channel(server.target) as channel:
        call = channel.unary_unary(
            f"/{MODELS}/GetModelStatus",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        (status,) = call(request, timeout=120).model_version_status
    assert status.version == 3


def test_a_file_comes_with_those_it_imports_each_once(reflection):
    (response,) = answers(reflection, {"file_containing_symbol": MODELS})
    names = files_in(response)
    assert names[0] == "tensorflow_serving/apis/model_service.proto"
    assert set(MODEL_FILES) < set(names)
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "question",
    [
        {"file_by_filename": MODEL_FILES[0]},
        {"file_containing_symbol": "tensorflow.serving.ModelSpec"},
        {"file_containing_symbol": "tensorflow.serving.ModelSpec.version_label"},
    ],
)
def test_a_file_is_found_by_its_name_and_contents(reflection, question):
    (response,) = answers(reflection, question)
    assert files_in(response) == MODEL_FILES


def test_a_message_without_extensions_has_none(reflection):
    name = "tensorflow.serving.ModelSpec"
    (response,) = answers(reflection, {"all_extension_numbers_of_type": name})
    assert response.all_extension_numbers_response.base_type_name == name
    assert not response.all_extension_numbers_response.extension_number


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"file_by_filename": "no/such.proto"}, "File not found"),
        ({"file_by_filename": ""}, "File not found"),
        ({"file_containing_symbol": "no.Such"}, "Symbol not found"),
        ({"all_extension_numbers_of_type": "no.Such"}, "Type not found"),
        ({"file_containing_extension": {"containing_type": "no.Such"}}, "Type not found"),
        (
            {
                "file_containing_extension": {
                    "containing_type": "google.protobuf.FieldOptions",
                    "extension_number": 123456,
                }
            },
            "Extension not found",
        ),
    ],
)
def test_an_unknown_name_is_answered_and_the_stream_continues(reflection, question, words):
    response, after = answers(reflection, question, {"file_by_filename": MODEL_FILES[0]})
    assert response.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]
    assert words in response.error_response.error_message
    assert files_in(after) == MODEL_FILES


def test_an_empty_question_is_unimplemented(reflection):
    (response,) = answers(reflection, {"host": "a"})
    assert response.valid_host == "a"
    assert response.error_response.error_code == grpc.StatusCode.UNIMPLEMENTED.value[0]


def test_a_stream_without_questions_ends_well(reflection):
    assert answers(reflection) == []


@pytest.mark.parametrize("message", [b"\xff" * 10, b"\x22\x05abc", b"\x22\x02\xff\xfe"])
def test_bytes_that_are_no_question_end_the_stream(server, reflection, message):
    good = reflection_pb2.ServerReflectionRequest(file_by_filename=MODEL_FILES[0])
    with grpc.insecure_channel(server.target) as channel:
        stream = channel.stream_stream(f"/{REFLECTION}/ServerReflectionInfo")
        call = stream(iter([good.SerializeToString(), message]), timeout=120)
        assert next(call)
        with pytest.raises(grpc.RpcError) as raised:
            next(call)
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "malformed ServerReflectionRequest" in raised.value.details()
    assert answers(reflection, {"file_by_filename": MODEL_FILES[0]})
