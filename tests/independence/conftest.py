"""Serves models of the registry: a few by default, all of them on request.

COLCAST_HAMMER_ANSWERS=100000 selects all models, and sets the number of answers from all of them
together.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import pytest
import tensorflow as tf
from colcast.server import ServerProcess

from ..models import RANKING
from .cases import SIZES, Case, cases_of
from .exported import Exported
from .hammer import VARIANTS, serve

# The worst case of every kind and the most common constructions take a minute of CPU, mostly for
# exports.
SHORT = (
    *("softmax", "keep_best", "keep_cheapest", "branch_on_country", "unique_counts"),
    *("scalar_output", "one_row_output", "unmasked_mean", "unmasked_tags", "plain_functional"),
    *("pointwise", "masked_attention", "sparse_lookups", "ragged_layers", "sparse_slice"),
)
SHORT_VARIANTS = ("one worker", "split", "batching, split")
SHORT_SIZES = (1, 2, 5, 20, 150, 1500)
SHORT_ANSWERS = 64

ANSWERS = int(os.environ.get("COLCAST_HAMMER_ANSWERS", "0"))
GROUPS: Sequence[tuple[str, ...]] = [(name,) for name in RANKING] if ANSWERS else [SHORT]
NAMES = [name for group in GROUPS for name in group]
USED = tuple(VARIANTS) if ANSWERS else SHORT_VARIANTS
if ANSWERS:  # as servers do; the short form has no op large enough for two threads
    tf.config.threading.set_intra_op_parallelism_threads(1)
EACH = -(-ANSWERS // (len(NAMES) * len(USED))) if ANSWERS else SHORT_ANSWERS

Models = dict[str, Exported]


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Exported]:
    """Exports a model of the registry, once per session."""
    folder = tmp_path_factory.mktemp("models")
    return cache(lambda name: Exported(RANKING[name], folder / name))


@pytest.fixture(scope="session", params=GROUPS, ids=lambda g: g[0] if g[1:] == () else "all")
def group(request: pytest.FixtureRequest, exported: Callable[[str], Exported]) -> Models:
    """The models by name that share a server."""
    return {name: exported(name) for name in request.param}


@pytest.fixture(scope="session")
def cases(group: Models) -> Callable[[str], list[Case]]:
    """Makes the requests to a model of the group."""
    return cache(lambda name: cases_of(group[name], SIZES if ANSWERS else SHORT_SIZES))


@pytest.fixture(scope="session", params=USED)
def variant(request: pytest.FixtureRequest) -> str:
    """The name of the server's configuration, a key of VARIANTS."""
    return str(request.param)


@pytest.fixture(scope="session")
def server(
    group: Models, variant: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """The server of the group's models."""
    with serve(list(group.values()), variant, tmp_path_factory.mktemp("config")) as process:
        yield process
