"""The comparisons of several formats of B as one."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from colcast.loadtest.compare.agreement import Agreement


def joined(found: Mapping[str, Agreement]) -> Agreement:
    """All requests and outputs; outputs and refusals carry their format.

    Args:
      found: B's format -> what was found in it.
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
