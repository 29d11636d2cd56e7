"""The settings of the clients."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Literal, get_args

from colcast.client._errors import InputError

USER_HEADER = "x-colcast-user"
"""The header that routes a user's requests to the server that caches the user's state."""

NonePolicy = Literal["default", "error"]
NanPolicy = Literal["send", "default", "error"]
UnusedPolicy = Literal["drop", "error"]
Dedupe = Literal["auto", "off"]
Affinity = Literal["auto", "off"]
Target = Literal["auto", "late", "columnar_late", "columnar", "stock", "repeated", "example"]
"""How a request is written.

- auto: late if the model has that signature and the request has one user; otherwise columnar if the
  server declares that it repeats rows, else stock; example if the model takes only tf.Examples.
- late, columnar_late: user features as one row, items as N rows, to the signature `columnar_late`;
  the model repeats the user's row.
- columnar: the same to the signature `columnar`; the server (colcast's or the fork) repeats the
  user's row.
- stock: for an unpatched TensorFlow Serving: N rows for every feature; a value that all rows share
  is written once, and TensorFlow fills the tensor with it.
- repeated: N rows for every feature, all of them written.
- example: N serialized tf.Examples.
"""


@dataclass(frozen=True, slots=True)
class Policies:
    """How missing values and unused columns are treated.

    Attributes:
        none: None (also pandas' NA and NaT, Arrow's and Polars' nulls) in place of a value.
            "default": the model's default, an empty list for a multi-valued feature, an error for a
            feature without default. "error": always an error.
        nan: NaN in a float feature. "error": NaN and infinity are errors. "send": both are sent,
            for models that accept them, such as decision forests. "default": NaN counts as None. A
            feature whose default is NaN accepts NaN. (In place of an integer, string, list or
            vector, NaN is pandas' mark for a missing value and always counts as None.)
        unused: a column that the signature does not use. "drop": dropped, counted in the call's
            span, and logged once per name. "error": an error.
    """

    none: NonePolicy = "default"
    nan: NanPolicy = "error"
    unused: UnusedPolicy = "drop"

    def __post_init__(self) -> None:
        for name, kind in (("none", NonePolicy), ("nan", NanPolicy), ("unused", UnusedPolicy)):
            value, allowed = getattr(self, name), get_args(kind)
            if value not in allowed:
                known = ", ".join(allowed)
                raise InputError(f"policy {name} must be one of {known}, got {value!r}")


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS to the server; mutual TLS if a key and a certificate are given.

    Attributes:
        root_certificates: PEM file of trusted authorities; None for the system's.
        private_key: PEM file of the client's key.
        certificate_chain: PEM file of the client's certificate.
        server_name: the name in the servers' certificates, if it differs from the address. With
            several addresses, the default is the first one's name, since gRPC checks one name for
            all of them.
    """

    root_certificates: str | Path | None = None
    private_key: str | Path | None = None
    certificate_chain: str | Path | None = None
    server_name: str | None = None

    def read(self) -> list[bytes | None]:
        """Reads the files: root certificates, private key, certificate chain.

        Raises:
            InputError: a key without a certificate or vice versa, or a file that cannot be read.
        """
        if (self.private_key is None) != (self.certificate_chain is None):
            raise InputError("mutual TLS needs both private_key and certificate_chain")
        return [_pem(self.root_certificates), _pem(self.private_key), _pem(self.certificate_chain)]


@dataclass(frozen=True, slots=True)
class ChannelOptions:
    """How to reach the servers.

    Attributes:
        tls: TLS settings; None for plain text.
        max_message_bytes: largest request or answer; -1 for unlimited, because embeddings for a
            thousand candidates exceed gRPC's default of 4 MB.
        keepalive_seconds: a connection with open calls is pinged after this long without data.
        gzip: whether to compress requests; ids and text shrink, embeddings hardly do.
        load_bound: with several servers, calls for a user go elsewhere while the user's own server
            has more than this many times the mean number of the client's calls in flight. Infinity
            turns this off.

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
            servers behind it. Calls go only to servers that are up and report that they serve. A
            user's calls go to the same server, other calls to the server with the fewest calls in
            flight.
        model: the served model's name.
        target: how requests are written; see `Target`.
        signature: overrides the signature that the target would call.
        version: the model version; None lets the server choose.
        version_label: the label of the version, instead of its number.
        score_output: the output to rank by, such as "scores", or a column of it, such as
            "probabilities[:, 1]"; None finds it (see `Ranking.scores`).
        item_key: the name of the key when `item_keys` is a plain list.
        timeout_seconds: deadline of a call, including retries and requests for signatures.
        fork: whether the servers are colcast's fork of TensorFlow Serving, which repeats single
            rows without declaring it, so "auto" would send all rows.
        dedupe: "auto" sends columns that are equal on every row once, and only the distinct rows of
            a domain if that is much smaller; "off" does neither.
        affinity: "auto" sends a hash of the user's columns with each single-user request, as
            `x-colcast-user`, which routes all of the user's requests to one server; "off" does so
            only for calls with a key.
        affinity_secret: the key of that hash, at most 64 bytes; all clients of the servers must use
            the same one.
        policies: how missing values and unused columns are treated.
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
    item_key: str = "item_id"
    timeout_seconds: float = 1.0
    fork: bool = False
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
    """The canonical name of a target; InputError if there is no such target."""
    if target not in get_args(Target):
        raise InputError(
            f"target must be one of {', '.join(get_args(Target))}, got {target!r} "
            "(the server's address is the first argument)"
        )
    return "late" if target == "columnar_late" else target


def check_timeout(timeout_seconds: float) -> None:
    """Raises InputError unless the timeout is positive."""
    if not timeout_seconds > 0:
        raise InputError(f"timeout_seconds must be above 0, got {timeout_seconds!r}")


def _pem(path: str | Path | None) -> bytes | None:
    try:
        return None if path is None else Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
