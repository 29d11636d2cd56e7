"""What a load test or a search for settings measured of one server."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

_WORKERS_FLAG = "--num_workers="


class UnusableError(ValueError):
    """A result from which no capacity can be told; the message says why and what to do."""


@dataclass(frozen=True)
class Stretch:
    """A while of load at one rate.

    Attributes:
      rate: requests per second that were sent.
      clients: that each waited for an answer; 0 where none waited.
      calls: how many.
      cpu_ms: of the server per request.
      quantiles_ms: (percentile, latency), ascending.
    """

    rate: float
    clients: int
    calls: int
    cpu_ms: float
    quantiles_ms: tuple[tuple[float, float], ...]

    @property
    def median_ms(self) -> float:
        """Latency."""
        return dict(self.quantiles_ms)[50.0]

    def busy(self, workers: int) -> float:
        """The share of so many workers that its CPU time alone takes."""
        return self.rate * self.cpu_ms / 1000 / workers


@dataclass(frozen=True)
class Measured:
    """One result.

    Attributes:
      source: its path.
      stretches: those that say something, lowest rate first; at least one.
      left_out: why others do not.
      users_found: the share of users whose state was known; None if nobody counted.
      flags: the server's, where the result has them.
      machine: that it was measured on, in words.
    """

    source: Path
    stretches: tuple[Stretch, ...]
    left_out: tuple[str, ...] = ()
    users_found: float | None = None
    flags: tuple[str, ...] = ()
    machine: str = ""

    @property
    def workers(self) -> int | None:
        """Of the server, where its flags say so."""
        given = [flag for flag in self.flags if flag.startswith(_WORKERS_FLAG)]
        return int(given[-1].removeprefix(_WORKERS_FLAG)) if given else None

    @property
    def cpu_ms(self) -> float:
        """Of the server per request, over all calls."""
        calls = sum(one.calls for one in self.stretches)
        return sum(one.cpu_ms * one.calls for one in self.stretches) / calls

    def with_users_found(self, share: float) -> "Measured":
        """The same, where somebody else knows the share."""
        return replace(self, users_found=share)


def read(path: Path, series: str | None = None) -> Measured:
    """Reads report.json of `colcast loadtest` or tune.json of `colcast tune`.

    Args:
      path: of the file, or of the folder that it is in.
      series: the label of one of a load test's series; not needed where there is one.

    Raises:
      UnusableError: it is neither, or says nothing about capacity.
    """
    path = _file(path)
    try:
        found = json.loads(path.read_text())
        if "tried" in found:
            return _of_tuning(path, found)
        if "series" in found:
            return _of_load_test(path, found, series)
    except OSError as error:
        raise UnusableError(f"{path}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        if isinstance(error, UnusableError):
            raise
        raise UnusableError(f"{path}: not as colcast writes it: {error!r}") from error
    raise UnusableError(
        f"{path}: expected report.json of colcast loadtest or colcast tune's tune.json"
    )


# Implementation details follow.


def _file(path: Path) -> Path:
    if not path.is_dir():
        return path
    there = [path / name for name in ("report.json", "tune.json") if (path / name).exists()]
    if len(there) != 1:
        raise UnusableError(f"{path}: expected report.json or tune.json in it")
    return there[0]


def _of_tuning(path: Path, found: Mapping[str, Any]) -> Measured:
    if not found["rate"]:
        raise UnusableError(
            f"{path}: no setting met {found['target']}, so none can be planned with"
        )
    best = next(one for one in found["tried"] if one["flags"] == found["best"])
    return _measured(path, _windows(path, best["windows"]), flags=tuple(found["best"]))


def _of_load_test(path: Path, found: Mapping[str, Any], label: str | None) -> Measured:
    labels = [one["label"] for one in found["series"]]
    if label is None and len(labels) != 1:
        raise UnusableError(f"{path}: it has {_listed(labels)}; choose one with --series")
    if label is not None and label not in labels:
        raise UnusableError(f"{path}: no series {label!r}; it has {_listed(labels)}")
    (series,) = (one for one in found["series"] if label in (None, one["label"]))
    if not series["sound"]:
        raise UnusableError(f"{path}: answers of {series['label']} were wrong, refused or missing")
    if search := series["search"]:
        observed = _windows(path, [*search["windows"], *search["measured_again"]])
    else:
        observed = [(found["load"].get("rate", 0.0), _observed(path, series))]
    clients = int(found["load"].get("clients", 0))
    return _measured(path, observed, clients, machine=found["machine"])


Observed = tuple[float, Mapping[str, Any]]  # the rate that was sent, and what came of it


def _windows(path: Path, windows: Sequence[Mapping[str, Any]]) -> list[Observed]:
    return [(one["rate"], _observed(path, one)) for one in windows]


def _observed(path: Path, of: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] | None = of.get("observed")
    if found is None:
        raise UnusableError(f"{path}: written by a colcast that kept no latencies; measure again")
    return found


def _measured(
    path: Path,
    observed: Sequence[Observed],
    clients: int = 0,
    flags: tuple[str, ...] = (),
    machine: str = "",
) -> Measured:
    if not observed:
        raise UnusableError(f"{path}: nothing was measured")
    left_out, kept = [], []
    for rate, one in observed:
        if why := _why_not(one):
            left_out.append(f"{path}, {rate or one['per_second']:,.0f} per second: {why}")
        else:
            kept.append((rate, one))
    if not kept:
        raise UnusableError("; ".join(dict.fromkeys(left_out)))
    stretches = [_stretch(rate, one, clients) for rate, one in kept]
    return Measured(
        path,
        tuple(sorted(stretches, key=lambda one: one.rate)),
        tuple(dict.fromkeys(left_out)),
        _mean_found([one for _, one in kept]),
        flags,
        machine,
    )


def _why_not(one: Mapping[str, Any]) -> str:
    if not one["calls"]:
        return "no call was sent"
    if one["errors"]:
        return f"{one['errors']:,} of {one['calls']:,} calls failed"
    if not one["kept_up"]:
        return "the load generator was late: its latencies are not the server's"
    if one["server_cpu_ms"] is None:
        return "no CPU figure of the server; colcast loadtest takes one with --pid or --metrics"
    return ""


def _stretch(rate: float, one: Mapping[str, Any], clients: int) -> Stretch:
    quantiles = tuple((percentile, ms) for percentile, ms in one["quantiles_ms"])
    return Stretch(
        rate or one["per_second"], clients, one["calls"], one["server_cpu_ms"], quantiles
    )


def _mean_found(observed: Sequence[Mapping[str, Any]]) -> float | None:
    known = [
        (one["users_found"], one["calls"]) for one in observed if one["users_found"] is not None
    ]
    calls = sum(count for _, count in known)
    return sum(share * count for share, count in known) / calls if calls else None


def _listed(labels: Sequence[str]) -> str:
    return ", ".join(map(repr, labels)) or "no series"
