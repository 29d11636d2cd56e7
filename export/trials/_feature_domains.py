"""Assigns features to domains: by patterns, or from recorded requests."""

import dataclasses
import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence

from colcast.export.convert._features import Side
from colcast.export.convert._signature import Conversion
from colcast.export.graph._errors import ExportError
from colcast.export.trials._traffic import Recorded

AUTO = "auto"
_TAKEN = ("pair", "late", "exact")  # reserved names: columnar_late, for example, is not a stage
_FLAGS: Mapping[str, str] = {Side.USER: "--user-features", Side.CANDIDATE: "--context-features"}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

Patterns = Mapping[str, Sequence[str]]
"""The patterns of each domain's features."""


def read_domains(
    domains: Patterns, user_features: Sequence[str], context_features: Sequence[str]
) -> dict[str, Sequence[str]]:
    """Patterns by domain, including those of the user and the candidates.

    Raises:
      ExportError: a domain's name is not allowed, or it has no pattern.
    """
    for domain, patterns in domains.items():
        if not _NAME.fullmatch(domain):
            expected = "letters, digits and underscores, beginning with a letter"
            raise ExportError(f"domain {domain!r}: expected {expected}")
        if domain in _TAKEN:
            raise ExportError(f"domain {domain!r}: this name is reserved; choose another")
        if not patterns:
            raise ExportError(f"domain {domain!r} has no features: expected names or patterns")
    named = {Side.USER: user_features, Side.CANDIDATE: context_features}
    read = {str(domain): [*domains.get(domain, ()), *own] for domain, own in named.items()}
    return {**read, **{domain: own for domain, own in domains.items() if domain not in read}}


def mark_domains(
    conversions: Sequence[Conversion], domains: Patterns, traffic: Recorded | None
) -> list[Conversion]:
    """Returns the conversions with each feature in its domain.

    The context features of an ExampleListWithContext are the user's.

    Args:
      conversions: the signatures.
      domains: patterns in the form of `fnmatch`. The user's `auto` stands for the features that are
        constant in the traffic. Features that match no pattern are the item's.
      traffic: recorded requests, if there are any.

    Raises:
      ExportError: a pattern matches no feature, a feature is in two domains, or there are no
          requests for `auto`.
    """
    names = {feature.name for conversion in conversions for feature in conversion.features}
    context = {name for c in conversions for name in c.context or ()}
    found = dict.fromkeys(context, (str(Side.USER), "the context of ExampleListWithContexts"))
    for domain, patterns in domains.items():
        for pattern in patterns:
            if domain == Side.USER and pattern == AUTO and AUTO not in names:
                matched: Iterable[str] = names.intersection(_constant(traffic))
            else:
                matched = fnmatch.filter(names, pattern)
                if not matched:
                    raise ExportError(
                        f"{_flag(domain, pattern)} matches no feature; the model takes"
                        f" {', '.join(sorted(names))}"
                    )
            for name in matched:
                other, by = found.setdefault(name, (domain, _flag(domain, pattern)))
                if other != domain:
                    raise ExportError(
                        f"feature {name!r} is in two domains: by {by} and by"
                        f" {_flag(domain, pattern)}"
                    )
    return [
        dataclasses.replace(
            conversion,
            features=tuple(
                dataclasses.replace(f, side=found.get(f.name, (Side.ITEM,))[0])
                for f in conversion.features
            ),
        )
        for conversion in conversions
    ]


def _flag(domain: str, pattern: str) -> str:
    """The pattern as the user wrote it on the command line."""
    if domain in _FLAGS:
        return f"{_FLAGS[domain]} {pattern!r}"
    return f"--domain {domain}={pattern!r}"


def _constant(traffic: Recorded | None) -> Sequence[str]:
    if traffic is None:
        raise ExportError("--user-features auto needs recorded requests: name them with --examples")
    return traffic.constant_features()
