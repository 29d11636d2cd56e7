"""The series to compare: every server with every format, on the same data."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

from colcast.client import ChannelOptions, InputError, Policies, RankingClient, SchemaError, Tls
from colcast.loadtest.measure.correctness import (
    Refused,
    expected_answers,
    outputs_difference,
    predicts,
    reference_answers,
)
from colcast.loadtest.send.connection import Outputs, Request
from colcast.loadtest.send.formats import RequestData, encode, signature_for
from colcast.loadtest.send.generated import ADVICE

_ENCODE_TIMEOUT_SECONDS = 60.0
_REASON_CHARACTERS = 120


@dataclass(frozen=True)
class Target:
    """A server under test.

    Attributes:
      name: its name in reports; empty if it is the only one.
      address: HOST:PORT of its gRPC service.
      tls: None for plain text.
      version: the model's version; None if the server chooses.
    """

    name: str
    address: str
    tls: Tls | None = None
    version: int | None = None

    def client(
        self, model: str, timeout_seconds: float, signature: str | None = None
    ) -> RankingClient:
        """Makes a client for a served model, with its usual signatures or with the given one."""
        return RankingClient(
            self.address,
            model,
            timeout_seconds=timeout_seconds,
            channel=ChannelOptions(tls=self.tls),
            signature=signature,
            version=self.version,
            policies=Policies(nan="send"),
        )


@dataclass(frozen=True)
class Series:
    """A target with a format; one line in every report.

    Attributes:
      target: the server that receives the requests.
      format: a name in `FORMATS`.
      requests: encoded requests; request i ranks the same candidates in every series.
      expected: the expected answer to each request: the answer in the server's first format.
      difference: the largest relative difference from these answers before the load.
      fresh: whether waiting clients send no request twice; there must be enough, and windows have a
        number of calls.
    """

    target: Target
    format: str
    requests: Sequence[Request]
    expected: Sequence[Outputs] = ()
    difference: float = 0.0
    fresh: bool = False

    @property
    def label(self) -> str:
        """The series' name in reports."""
        return label(self.target, self.format)


@dataclass(frozen=True)
class LeftOut:
    """A format that a server cannot answer.

    Attributes:
      target: the server.
      format: a name in `FORMATS`.
      reason: the full reason.
      advice: how to fix it; empty if no fix is known.
    """

    target: Target
    format: str
    reason: str
    advice: str = ""

    def __str__(self) -> str:
        """The reason in one or two lines, because TensorFlow may name every node of a graph."""
        short = textwrap.shorten(self.reason, _REASON_CHARACTERS, placeholder=" ...")
        advice = f": {self.advice}" if self.advice else ""
        return f"{label(self.target, self.format)} is left out: {short}{advice}"


def label(target: Target, format_name: str) -> str:
    """A short name for a target and format."""
    return f"{target.name}: {format_name}" if target.name else format_name


def parse_target(text: str) -> Target:
    """Reads `HOST:PORT` or `NAME=HOST:PORT`."""
    name, equals, address = text.rpartition("=")
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdigit() and (name or not equals)):
        raise ValueError(f"target {text!r}: expected HOST:PORT or NAME=HOST:PORT")
    return Target(name, address)


def prepare(
    targets: Sequence[Target],
    model: str,
    formats: Sequence[str],
    data: Sequence[RequestData],
    signature: str | None = None,
) -> tuple[list[Series], list[LeftOut]]:
    """Encodes the data for every target in every format; sends each request once as a warm-up.

    Leaves out formats that a server refuses or has no signature for. `signature` replaces the
    formats' usual signatures.
    """
    names = [target.name for target in targets]
    if len(set(names)) < len(names):
        raise ValueError("targets need different names: --target a=HOST:PORT --target b=HOST:PORT")
    series, left_out = [], []
    for target in targets:
        written, refused = encoded(target, model, formats, data, signature)
        answered, unanswered = _answered(written, data)
        series += answered
        left_out += refused + unanswered
    if not series:
        raise RuntimeError("; ".join(map(str, left_out)))
    return series, left_out


def encoded(
    target: Target,
    model: str,
    formats: Sequence[str],
    data: Sequence[RequestData],
    signature: str | None,
) -> tuple[list[Series], list[LeftOut]]:
    """Encodes the data for one target in every format.

    Also returns the formats that do not work with the target or its model.
    """
    series, left_out = [], []
    with target.client(model, _ENCODE_TIMEOUT_SECONDS) as client:
        schema = client.schema()
    for name in formats:
        try:
            called = signature_for(schema, name, signature)
            with target.client(model, _ENCODE_TIMEOUT_SECONDS, called) as client:
                requests = [encode(client, name, one) for one in data]
        except (SchemaError, InputError, ValueError) as error:
            left_out.append(LeftOut(target, name, _one_line(error)))
        else:
            series.append(Series(target, name, requests))
    return series, left_out


def _answered(
    written: Sequence[Series], data: Sequence[RequestData]
) -> tuple[list[Series], list[LeftOut]]:
    """The series that were answered, with expected answers; the refused ones."""
    advice = "" if any(one.examples or one.recorded for one in data) else ADVICE
    answers, left_out = {}, []
    for one in written:
        target = one.target
        try:
            answers[one.format] = reference_answers(target.address, one.requests, target.tls)
        except Refused as error:
            left_out.append(LeftOut(one.target, one.format, _one_line(error), advice))
    kept = [one for one in written if one.format in answers]
    first = next(iter(sorted(kept, key=lambda one: not predicts(one.requests))), None)
    series = []
    for one in kept:
        assert first
        own = answers[one.format]
        expected = expected_answers(one.requests, own, answers[first.format])
        difference = max(map(outputs_difference, expected, own))
        series.append(replace(one, expected=expected, difference=difference))
    return series, left_out


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
