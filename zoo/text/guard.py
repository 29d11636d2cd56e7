"""Checks a cheaper encoder: its vectors must nearly equal those of the exact one."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LEAST_COSINE = 0.999

Encode = Callable[[list[str]], npt.NDArray[np.float32]]

SENTENCES = [
    "Yes.",
    "cheap flights to lisbon in may",
    "how to reset a forgotten password",
    "The dollar fell against the yen.",
    "Two cups of flour, 250 ml of milk and a pinch of salt",
    "error 0x80070057: the parameter is incorrect",
    "She did not like the film.",
    "She did not dislike the film, although its second half was too long for her.",
    "Heavy rain is expected in the north tonight; the south stays dry.",
    "The court ruled that the contract was void because one side had not signed it.",
    "A proof by induction needs a first case and a step from each case to the next one.",
    "Crude oil rose 3.2 % to $71.40 after ministers agreed to cut output by a tenth from June.",
    "The patient took 5 mg of the drug twice daily and showed no sign of an allergic reaction.",
    "Wireless headphones, black, 30 hours of battery life, a case and three sizes of ear tips",
    "In the second half the home side pressed higher up the pitch, won the ball back in seconds "
    "and scored twice before the visitors, who had led since the tenth minute, had a shot of their "
    "own; the manager said afterwards that nothing but patience had changed.",
    "When the river froze, the traders who used to cross it by boat walked over the ice with their "
    "goods on sledges, and the ferrymen, who had no other work in winter, sold them soup and bread "
    "from a hut on the bank until the first warm days of March, when a red flag was raised and "
    "nobody was let on to the ice any more.",
]


@dataclass(frozen=True)
class Cosine:
    """Cosines between the vectors of SENTENCES and the exact ones."""

    least: float
    mean: float


def check(exact: Encode, cheaper: Encode, name: str) -> Cosine:
    """How close the cheaper encoder's vectors are.

    Raises:
      RuntimeError: the least cosine is below LEAST_COSINE.
    """
    cosines = (exact(SENTENCES) * cheaper(SENTENCES)).sum(axis=1)
    found = Cosine(float(cosines.min()), float(cosines.mean()))
    if found.least < LEAST_COSINE:
        raise RuntimeError(
            f"{name}: the cosine to float32's vectors is {found.least:.5f} at least and "
            f"{found.mean:.5f} in the mean of {len(SENTENCES)} sentences; "
            f"{LEAST_COSINE} at least is wanted, so the model is not written"
        )
    return found
