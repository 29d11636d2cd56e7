"""What a ranking service imports: rows in, scores out, the user sent once. No TensorFlow.

The data's path: `_inputs*` (any form -> table) -> `_columns`, `_batch` (checked columns) ->
`_targets` (who repeats the user) -> `_encode` (bytes) -> `_transport` -> `_decode` -> `_outputs`.
`_settings` has every setting, `_schema` what the server wants, `_metadata` how it says so,
`_request` one request as a whole, `_many_users` one for several users; `_flow` puts the steps in
order, once for the blocking and the asyncio client. `_affinity` says whose a request is,
`_servers` and `_choice` which server gets it. `_text` sends texts, which need no table;
`_text_batches` makes requests of them. `data_set` is for what is built before requests come,
`tfrecord` reads TFRecord files, `wire` protobuf messages.
"""

from typing import Any

from colcast.client._client import RankingClient
from colcast.client._client_async import AsyncRankingClient
from colcast.client._decode import decode_predict_response, decode_tensor
from colcast.client._dtypes import BY_NAME as DTYPES
from colcast.client._dtypes import DType
from colcast.client._encode import Tensor, encode_predict_request
from colcast.client._errors import (
    ColcastError,
    DecodeError,
    InputError,
    SchemaError,
    ServerError,
)
from colcast.client._inputs_examples import split_shared
from colcast.client._outputs import Ranked, Ranking
from colcast.client._request import PreparedItems
from colcast.client._schema import Feature, Kind, ModelSchema, Signature, TensorSpec
from colcast.client._settings import ChannelOptions, ClientSettings, Policies, Target, Tls
from colcast.client._text import AsyncTextClient, TextClient, TextSettings

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
    "decode_predict_response",
    "decode_tensor",
    "encode_predict_request",
    "split_shared",
]


def __getattr__(name: str) -> Any:
    """`__version__`, looked up when it is asked for."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    return version("colcast")
