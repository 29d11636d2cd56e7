"""A model whose lookups run as one op answers with the bits of one that runs as it was saved."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from colcast.server import ServerProcess
from colcast.zoo import wide
from colcast.zoo.columnar import columnar

SMALL = wide.Wide(name="small", user_features=12, item_features=9, buckets=50, hidden=(8,))
MODES = ("off", "exact")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, connect) -> Iterator[list[Any]]:
    base_path = columnar(wide.ensure(SMALL, tmp_path_factory.mktemp("zoo")), late=True)
    off, exact = (
        ServerProcess("ranker", base_path, [f"--graph_optimization={mode}"]) for mode in MODES
    )
    with off, exact:
        yield [connect(server.target) for server in (off, exact)]


def columns(candidates: int, seed: int) -> dict[str, np.ndarray]:
    user, items = next(islice(wide.requests(SMALL, candidates, seed), 1))
    values = {name: [value] for name, value in user.items()}
    values |= {name: [item[name] for item in items] for name in items[0]}
    return {
        name: np.array(values[name], object if dtype == "string" else dtype.as_numpy_dtype)
        for name, dtype in SMALL.dtypes.items()
    }


@pytest.mark.parametrize("signature", ["columnar", "columnar_late"])
@pytest.mark.parametrize("candidates", [1, 2, 33, 70])
def test_scores_have_the_same_bits(servers, signature: str, candidates: int):
    inputs = columns(candidates, seed=candidates)
    off, exact = (one.predict(inputs, signature_name=signature)["score"] for one in servers)
    assert off.tobytes() == exact.tobytes()
    assert len(set(off.tolist())) == candidates


def test_a_column_of_too_many_rows_is_the_same_error(servers):
    inputs = columns(3, seed=0) | {"item_000": np.array([1, 2])}
    said = []
    for server in servers:
        with pytest.raises(grpc.RpcError) as error:
            server.predict(inputs, signature_name="columnar_late")
        said.append((error.value.code(), error.value.details()))
    assert said[0] == said[1]


def test_the_log_says_what_was_optimized(tmp_path: Path):
    base_path = columnar(wide.ensure(SMALL, tmp_path), late=False)
    with ServerProcess("ranker", base_path, ["--graph_optimization=exact"]) as server:
        assert 'signature "columnar": 14 lookups run as one op' in server.log()
