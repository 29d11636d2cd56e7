"""A client for ranking services: sends the user once, returns scores. It needs no TensorFlow.

columns    any form of data -> checked columns -> bytes; answers -> arrays
request    columns -> one request, or one for several users; the ranking that comes back
transport  servers and calls: which server, deadlines, retries

`_asking` sends one request and learns what the server can do; `_flow` has the steps of each
method, as generators that yield calls, so `_client` and `_client_async` only wait. `_text` sends
texts, which need no schema. `_settings` has every setting. `data_set` converts data before requests
are made, `tfrecord` reads TFRecord files, `messages` and `wire` protobuf messages. The clients
import `request`, which imports `columns`.
"""

from typing import Any

from colcast.client._client import RankingClient
from colcast.client._client_async import AsyncRankingClient
from colcast.client._errors import (
    ColcastError,
    DecodeError,
    InputError,
    SchemaError,
    ServerError,
)
from colcast.client._settings import ChannelOptions, ClientSettings, Policies, Target, Tls
from colcast.client._text import AsyncTextClient, TextClient, TextSettings
from colcast.client.columns._decode import array_of, decode_predict_response, decode_tensor
from colcast.client.columns._dtypes import BY_NAME as DTYPES
from colcast.client.columns._dtypes import DType
from colcast.client.columns._encode import Tensor, encode_predict_request
from colcast.client.columns._inputs_examples import split_shared
from colcast.client.columns._schema import Feature, Kind, ModelSchema, Signature, TensorSpec
from colcast.client.request._outputs import Ranked, Ranking
from colcast.client.request._prepared import PreparedItems

__all__ = [
    "DTYPES",
    "AsyncRankingClient",
    "AsyncTextClient",
    "ChannelOptions",
    "ClientSettings",
    "ColcastError",
    "DType",
    "DecodeError",
    "Feature",
    "InputError",
    "Kind",
    "ModelSchema",
    "Policies",
    "PreparedItems",
    "Ranked",
    "Ranking",
    "RankingClient",
    "SchemaError",
    "ServerError",
    "Signature",
    "Target",
    "Tensor",
    "TensorSpec",
    "TextClient",
    "TextSettings",
    "Tls",
    "array_of",
    "decode_predict_response",
    "decode_tensor",
    "encode_predict_request",
    "split_shared",
]


def __getattr__(name: str) -> Any:
    """Looks up `__version__` on first use."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    return version("colcast")
