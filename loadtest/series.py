"""What is compared: each server under test in each format, on the same data."""

from collections.abc import Sequence
from dataclasses import dataclass

from colcast.client import RankingClient
from colcast.loadtest.connection import Request
from colcast.loadtest.formats import RequestData, encode

ENCODE_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True)
class Target:
    """A server under test.

    Attributes:
      name: how reports call it; empty where it is the only one.
      address: HOST:PORT of its gRPC service.
    """

    name: str
    address: str


@dataclass(frozen=True)
class Series:
    """One line in every report: a target in a format.

    Attributes:
      label: how reports call it.
      target: where the requests go.
      format: a name in `FORMATS`.
      requests: encoded; request i ranks the same candidates in every series.
    """

    label: str
    target: Target
    format: str
    requests: Sequence[Request]


def parse_target(text: str) -> Target:
    """Reads `HOST:PORT` or `NAME=HOST:PORT`.

    Raises:
      ValueError: there is no port, or nothing in front of it.
    """
    name, equals, address = text.rpartition("=")
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdigit() and (name or not equals)):
        raise ValueError(f"target {text!r}: wanted is HOST:PORT or NAME=HOST:PORT")
    return Target(name, address)


def encode_series(
    targets: Sequence[Target], model: str, formats: Sequence[str], data: Sequence[RequestData]
) -> list[Series]:
    """Encodes the same data for every target in every format; nothing is measured yet.

    Raises:
      ValueError: two targets of the same name, or data a format cannot be made from.
      colcast.client.ColcastError: a server is not there or does not serve a format.
    """
    names = [target.name for target in targets]
    if len(set(names)) < len(names):
        raise ValueError("targets need different names: --target a=HOST:PORT --target b=HOST:PORT")
    series = []
    for target in targets:
        with RankingClient(target.address, model, timeout_seconds=ENCODE_TIMEOUT_SECONDS) as client:
            for name in formats:
                requests = [encode(client, name, one) for one in data]
                series.append(Series(f"{target.name} {name}".strip(), target, name, requests))
    return series
