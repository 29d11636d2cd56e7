"""Requests that ask for some of the outputs: every set of them, more than the server prepares."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from colcast.server import ServerProcess

OUTPUTS = {f"times_{factor}": factor for factor in range(2, 8)}
SETS = [
    chosen for size in range(1, len(OUTPUTS) + 1) for chosen in combinations(sorted(OUTPUTS), size)
]


class Products(tf.Module):
    """As many outputs as factors."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def products(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {name: x * factor for name, factor in OUTPUTS.items()}


@pytest.fixture(name="target", scope="module")
def _target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    base_path = tmp_path_factory.mktemp("products")
    module = Products()
    tf.saved_model.save(module, str(base_path / "1"), signatures=module.products)
    with ServerProcess("products", base_path) as server:
        yield server.target


def test_every_set_of_outputs_is_answered_by_itself_while_others_ask_for_other_sets(
    target: str, connect: Any
) -> None:
    stubs = connect(target)

    def ask(chosen: tuple[str, ...]) -> None:
        x = np.arange(3, dtype=np.float32) + len(chosen)
        outputs = stubs.predict({"x": x}, output_filter=chosen, name="products")
        assert set(outputs) == set(chosen)
        for name in chosen:
            np.testing.assert_array_equal(outputs[name], x * OUTPUTS[name])

    with ThreadPoolExecutor(4) as clients:
        for _ in clients.map(ask, SETS * 3):
            pass
