"""Calls a prediction server with requests that were encoded beforehand."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import grpc
from colcast.client import Tls, decode_predict_response

_SERVICE = "/tensorflow.serving.PredictionService/"
PREDICT, CLASSIFY, REGRESS = (_SERVICE + name for name in ("Predict", "Classify", "Regress"))

CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    (
        "grpc.use_local_subchannel_pool",
        1,
    ),  # otherwise all channels share one connection
]


Outputs = dict[str, Any]  # output name -> array


def predicted(response: bytes) -> Outputs:
    """The outputs in a PredictResponse.

    Raises:
      colcast.client.DecodeError: the bytes are not a PredictResponse.
    """
    return decode_predict_response(response).outputs


@dataclass(frozen=True, slots=True)
class Request:
    """An encoded request.

    Attributes:
      payload: its encoded bytes.
      rows: the number of candidates.
      method: the gRPC method that it calls.
      decode: decodes the outputs from a response of that method.
    """

    payload: bytes
    rows: int
    method: str = PREDICT
    decode: Callable[[bytes], Outputs] = predicted


@dataclass(frozen=True, slots=True)
class Answer:
    """The name of the gRPC code, and the response or, if the code is not OK, the error message."""

    code: str
    response: bytes
    message: str
    sent_at: float  # both times are from time.perf_counter()
    answered_at: float

    @property
    def seconds(self) -> float:
        """The time from sending until the complete answer."""
        return self.answered_at - self.sent_at


class Connection:
    """A TCP connection that one client uses."""

    def __init__(self, target: str, timeout_seconds: float = 30.0, tls: Tls | None = None) -> None:
        """Prepares a connection to `target` (HOST:PORT), which is made at the first call."""
        self._timeout = timeout_seconds
        self._channel = _open_channel(target, tls)
        self._methods: dict[str, Any] = {}

    def call(self, request: Request) -> Answer:
        """Sends one request and waits; a failed call also returns an answer."""
        method = self._methods.get(request.method)
        if method is None:
            method = self._methods[request.method] = self._channel.unary_unary(
                request.method, request_serializer=None, response_deserializer=None
            )
        sent_at = time.perf_counter()
        try:
            response = method(request.payload, timeout=self._timeout)
            return Answer("OK", response, "", sent_at, time.perf_counter())
        except grpc.RpcError as error:
            answered_at = time.perf_counter()
            return Answer(error.code().name, b"", error.details() or "", sent_at, answered_at)

    def close(self) -> None:
        """Closes the connection; calls in flight end with CANCELLED."""
        self._channel.close()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _open_channel(target: str, tls: Tls | None) -> Any:
    """A channel to `target` (HOST:PORT) with its own connection."""
    if tls is None:
        return grpc.insecure_channel(target, CHANNEL_OPTIONS)
    name = [("grpc.ssl_target_name_override", tls.server_name)] if tls.server_name else []
    credentials = grpc.ssl_channel_credentials(*tls.read())
    return grpc.secure_channel(target, credentials, [*CHANNEL_OPTIONS, *name])
