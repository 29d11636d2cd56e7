"""The zoo's models as benches take them: exported, and what to send them."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from colcast.client import RankingClient
from colcast.loadtest.connection import Request
from colcast.loadtest.formats import RequestData, encode


def exported(name: str, *, late: bool = True) -> Path:
    """The base path of a model with columnar signatures.

    Raises:
      ValueError: the zoo has no such model.
    """
    from colcast.export.cli import silence_tensorflow
    from colcast.zoo.columnar import columnar
    from colcast.zoo.registry import MODELS

    silence_tensorflow()
    if name not in MODELS:
        raise ValueError(f"the zoo has no {name!r}; there are {', '.join(MODELS)}")
    return columnar(MODELS[name].saved_model(), late=late)


def zoo_rows(name: str) -> Callable[[int, int], Sequence[RequestData]]:
    """(N, count) -> so many requests of N candidates, all different, as rows."""
    from colcast.zoo.registry import MODELS

    def requests(size: int, count: int) -> list[RequestData]:
        found = MODELS[name].requests([size] * count, size)  # other users and items at every size
        return [RequestData(len(items), user, items) for user, items in found]

    return requests


def zoo_payloads(target: str, name: str, format_name: str, size: int, count: int) -> list[bytes]:
    """The same, encoded for the model as the server at HOST:PORT has it."""
    with RankingClient(target, name) as client:
        return [encode(client, format_name, it).payload for it in zoo_rows(name)(size, count)]


def wide_requests(users: int, rows: int, seed: int) -> list[Request]:
    """Of `wide`: a request per user, each for items drawn from the same 20,000."""
    from colcast.client import encode_predict_request
    from colcast.zoo.catalog import Catalog
    from colcast.zoo.wide import WIDE

    user = Catalog(WIDE, "user", users, seed)
    items = Catalog(WIDE, "item", 20_000, seed + 1)
    draw = np.random.default_rng(seed + 2)
    made = []
    for number in range(users):
        columns = user.columns(np.array([number])) | items.columns(draw.integers(0, 20_000, rows))
        made.append(Request(encode_predict_request("wide", "columnar_late", columns), rows))
    return made
