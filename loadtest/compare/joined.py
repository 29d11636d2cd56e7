"""Joins the comparisons with several formats of B into one."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from colcast.loadtest.compare.agreement import Agreement


def joined(found: Mapping[str, Agreement]) -> Agreement:
    """Joins all requests and outputs; each output and refusal says which format it is for.

    Args:
      found: B's format -> the result of its comparison.
    """
    (first, *others) = found.values()
    if not others:
        return first
    a, b = (sum((of.codes[side] for of in found.values()), Counter[str]()) for side in (0, 1))
    each = found.items()
    return Agreement(
        requests=sum(of.requests for of in found.values()),
        answered=sum(of.answered for of in found.values()),
        codes=(a, b),
        refusals=[replace(it, format=name) for name, of in each for it in of.refusals],
        alike=[replace(it, format=name) for name, of in each for it in of.alike],
        other_forms=[
            replace(it, name=f"{it.name}, {name}") for name, of in each for it in of.other_forms
        ],
        outputs=[replace(it, name=f"{it.name}, {name}") for name, of in each for it in of.outputs],
    )
