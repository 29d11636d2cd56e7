"""All settings of the clients."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Literal, get_args

from colcast.client._errors import InputError

USER_HEADER = "x-colcast-user"
"""The header by which a user's requests find the server that knows the user."""

NonePolicy = Literal["default", "error"]
NanPolicy = Literal["send", "default", "error"]
UnusedPolicy = Literal["suggest", "drop", "error"]
Dedupe = Literal["auto", "off"]
Affinity = Literal["auto", "off"]
Target = Literal["auto", "late", "columnar_late", "columnar", "stock", "repeated", "example"]
"""How a request is written.

auto: late if the model has that signature, the user is one and the server has not refused it;
    else columnar, or stock once a server has shown that it does not expand; example if the model
    takes nothing else. Where its only input may be text as well, rows that hold nothing but that
    input are columnar.
late, columnar_late: user features as one row, items as N, to the signature `columnar_late`: the
    model repeats.
columnar: the same to the signature `columnar`: the server (colcast's or the fork) repeats.
stock: for an unpatched TensorFlow Serving: N rows everywhere, but a feature that is one single
    value for all rows is written once and TensorFlow fills the tensor with it.
repeated: N rows everywhere, in full.
example: N serialized tf.Examples.
"""


@dataclass(frozen=True, slots=True)
class Policies:
    """How inputs with gaps or extras are treated.

    Attributes:
        none: None (also pandas' NA and NaT, Arrow's and Polars' nulls, masked entries of NumPy's
            masked arrays) in place of a value. "default": the model's default, an empty list for
            a multi-valued feature, an error for a feature without default. "error": always an
            error.
        nan: NaN in a float feature. "error": an error, as is an infinity. "send": both are sent,
            for models that take them, as decision forests do. "default": NaN is as None. A feature
            whose default is NaN takes NaN. (NaN where no float belongs, as pandas leaves behind
            for a missing integer, string, list or vector, always counts as None.)
        unused: a column the signature does not use. "suggest": dropped, named once in the log,
            but an error if its name looks like a misspelling of a feature that is absent.
            "drop": dropped. "error": an error.
    """

    none: NonePolicy = "default"
    nan: NanPolicy = "error"
    unused: UnusedPolicy = "suggest"

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("none", self.none, get_args(NonePolicy)),
            ("nan", self.nan, get_args(NanPolicy)),
            ("unused", self.unused, get_args(UnusedPolicy)),
        ):
            if value not in allowed:
                raise InputError(f"policy {name}={value!r} is none of {', '.join(allowed)}")


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS towards the server; with key and certificate, mutual TLS.

    Attributes:
        root_certificates: PEM file of the authorities to trust; None is the system's.
        private_key: PEM file of our key.
        certificate_chain: PEM file of our certificate.
        server_name: the name in the servers' certificates, if it is not the one called. Where
            there are several addresses it is the first one's, as gRPC checks one name for all.
    """

    root_certificates: str | Path | None = None
    private_key: str | Path | None = None
    certificate_chain: str | Path | None = None
    server_name: str | None = None

    def read(self) -> list[bytes | None]:
        """Reads the files: root certificates, private key, certificate chain.

        Raises:
            InputError: key without certificate or the reverse, or a file that cannot be read.
        """
        if (self.private_key is None) != (self.certificate_chain is None):
            raise InputError("mutual TLS needs both private_key and certificate_chain")
        return [_pem(self.root_certificates), _pem(self.private_key), _pem(self.certificate_chain)]


@dataclass(frozen=True, slots=True)
class ChannelOptions:
    """How to reach the servers.

    Attributes:
        tls: None is plain text.
        max_message_bytes: largest request or answer, -1 is unlimited. gRPC's own default of
            4 MB for answers is the limit people meet in production: a thousand candidates with
            a few embeddings are more, and the servers set no limit either.
        keepalive_seconds: ping after this long without an answer, while calls are open.
        gzip: compress requests. Columns of embeddings hardly shrink; ids and text do.
        load_bound: with several servers, a user's calls leave their server while it has more than
            so many times the mean of this client's calls in flight; infinity: never.

    Raises:
        InputError: a `load_bound` below 1.
    """

    tls: Tls | None = None
    max_message_bytes: int = -1
    keepalive_seconds: float = 30.0
    gzip: bool = False
    load_bound: float = 1.5

    def __post_init__(self) -> None:
        if not self.load_bound >= 1:
            raise InputError(f"load_bound must be at least 1, got {self.load_bound!r}")


@dataclass(eq=False)
class ClientSettings:
    """The settings of `RankingClient` and `AsyncRankingClient`.

    Attributes:
        address: "HOST:PORT", several of them, or "dns:///NAME:PORT", a DNS name with several
            servers behind it. Calls go to those that are up and say that they serve: a user's to
            the same one, others to the one with the fewest calls in flight.
        model: the served model's name.
        target: how requests are written, see `Target`.
        signature: the signature to call in place of the target's usual one.
        version: the model version; None is the server's choice.
        version_label: the label of the version, in place of its number.
        score_output: the output that ranks, like "scores", or its column, like
            "probabilities[:, 1]"; None finds it (see `Ranking.scores`).
        score_column: which column of an output [N, k] ranks.
        item_key: the name of the key where `item_keys` is a plain list.
        timeout_seconds: deadline of a call, including retries and requests for signatures.
        dedupe: "auto" sends columns that are equal on every row once, and each distinct row of a
            domain if that is much smaller; "off" does neither.
        affinity: "auto" sends with each request of one user a hash of the user's columns, as
            `x-colcast-user`, by which the same server gets all of them; "off" only where a call is
            given a key.
        affinity_secret: the key of that hash, at most 64 bytes; the same for all clients
            of the servers.
        policies: what to do about missing values and unused columns.
        channel: TLS, message size, keepalive, compression.

    Raises:
        InputError: a setting that cannot work.
    """

    address: str | Sequence[str]
    model: str
    _: KW_ONLY
    target: Target = "auto"
    signature: str | None = None
    version: int | None = None
    version_label: str | None = None
    score_output: str | None = None
    score_column: int | None = None
    item_key: str = "item_id"
    timeout_seconds: float = 1.0
    dedupe: Dedupe = "auto"
    affinity: Affinity = "auto"
    affinity_secret: str = "colcast"
    policies: Policies = field(default_factory=Policies)
    channel: ChannelOptions = field(default_factory=ChannelOptions)

    def __post_init__(self) -> None:
        known_target(self.target)
        for name in ("dedupe", "affinity"):
            if getattr(self, name) not in ("auto", "off"):
                raise InputError(f"{name} must be 'auto' or 'off', got {getattr(self, name)!r}")
        if len(self.affinity_secret.encode()) > 64:
            raise InputError("affinity_secret must be at most 64 bytes")
        check_timeout(self.timeout_seconds)
        if self.version is not None and self.version_label is not None:
            raise InputError("give version or version_label, not both")


def known_target(target: Target) -> Target:
    """The target under its usual name; InputError if there is no such target."""
    if target not in get_args(Target):
        raise InputError(
            f"target must be one of {', '.join(get_args(Target))}, got {target!r} "
            "(the server's address is the first argument)"
        )
    return "late" if target == "columnar_late" else target


def check_timeout(timeout_seconds: float) -> None:
    """Raises InputError unless it is above 0."""
    if not timeout_seconds > 0:
        raise InputError(f"timeout_seconds must be above 0, got {timeout_seconds!r}")


# Implementation details follow.


def _pem(path: str | Path | None) -> bytes | None:
    try:
        return None if path is None else Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
