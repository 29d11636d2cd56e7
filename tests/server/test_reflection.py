"""gRPC reflection: a client that has no .proto file finds the services and calls them."""

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from tensorflow_serving.apis import model_service_pb2, prediction_service_pb2

PREDICTION = "tensorflow.serving.PredictionService"
MODELS = "tensorflow.serving.ModelService"
HEALTH = "grpc.health.v1.Health"


@pytest.fixture
def reflected(server):
    """What the server says of itself."""
    with grpc.insecure_channel(server.target) as channel:
        yield ProtoReflectionDescriptorDatabase(channel)


def test_every_service_is_listed(reflected):
    assert {PREDICTION, MODELS, HEALTH} <= set(reflected.get_services())


@pytest.mark.parametrize(
    ("service", "protos"), [(PREDICTION, prediction_service_pb2), (MODELS, model_service_pb2)]
)
def test_the_methods_are_those_of_tensorflow_serving(reflected, service, protos):
    found = DescriptorPool(reflected).FindServiceByName(service)
    wanted = protos.DESCRIPTOR.services_by_name[service.rpartition(".")[2]]
    assert signatures(found.methods) == signatures(wanted.methods)


def test_health_is_described_with_the_methods_the_server_has(reflected):
    """A newer health.proto adds List."""
    found = signatures(DescriptorPool(reflected).FindServiceByName(HEALTH).methods)
    assert {name for name, _, _ in found} == {"Check", "Watch"}
    assert found < signatures(health_pb2.DESCRIPTOR.services_by_name["Health"].methods)


def signatures(methods: list[MethodDescriptor]) -> set[tuple[str, str, str]]:
    return {(one.name, one.input_type.full_name, one.output_type.full_name) for one in methods}


def test_a_call_made_of_nothing_but_reflection_is_answered(reflected, server):
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
        (status,) = call(request, timeout=30).model_version_status
    assert status.version == 3
