"""gRPC's health service."""

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

Status = health_pb2.HealthCheckResponse
PREDICTION = "tensorflow.serving.PredictionService"
MODELS = "tensorflow.serving.ModelService"
HEALTH = "grpc.health.v1.Health"
INFERENCE = "inference.GRPCInferenceService"
CHECKED = ("", PREDICTION, MODELS, INFERENCE)
UNKNOWN = "tensorflow.serving.NoSuchService"


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


@pytest.mark.parametrize(
    ("method", "message"), [("Check", b"\x0a\x05abc"), ("Watch", b"\x0a\x02\xff\xfe")]
)
def test_bytes_that_are_no_message_end_the_call(channel, health, method, message):
    call = channel.unary_stream(f"/{HEALTH}/{method}")(message, timeout=120)
    with pytest.raises(grpc.RpcError) as raised:
        next(call)
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "malformed" in raised.value.details()
    assert health.Check(asked(), timeout=120).status == Status.SERVING
