"""`wide` with all states kept: items by key against features sent.

    python -m tests.items.bench_by_key

One server; the ways take turns with the same ten requests. Server CPU per request, bytes, and the
shares of features sent.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from colcast.client import encode_predict_request
from colcast.items import build_table
from colcast.loadtest.variants import measure_variants, predicting
from colcast.loadtest.zoo_models import exported
from colcast.server import ServerProcess
from colcast.zoo.catalog import Catalog
from colcast.zoo.wide import WIDE

SIZES, REQUESTS, CALLS = (20, 100, 500), 10, 100


def request_pairs(size: int) -> tuple[list[tuple[bytes, bytes]], pd.DataFrame]:
    """Requests with features and by key, and the items of all of them."""
    users = Catalog(WIDE, "user", REQUESTS, seed=2 * size)
    items = Catalog(WIDE, "item", REQUESTS * size, seed=2 * size + 1)
    pairs = []
    for number in range(REQUESTS):
        rows = np.arange(number * size, (number + 1) * size)
        user = users.columns(np.array([number]))
        sent, keyed = (
            encode_predict_request("wide", "columnar_late", user | each)
            for each in (items.columns(rows), {"item_key": rows + size * 1_000_000})
        )
        pairs.append((sent, keyed))
    rows = np.arange(REQUESTS * size)
    columns = {name: list(values) for name, values in items.columns(rows).items()}
    return pairs, pd.DataFrame({"item_key": rows + size * 1_000_000} | columns)


def main() -> None:
    """Prints a line for each size and way."""
    parser = argparse.ArgumentParser(description="Items by key on `wide`.")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    model = exported("wide")
    with tempfile.TemporaryDirectory() as name:
        tables = Path(name)
        sizes = {size: request_pairs(size) for size in SIZES}
        items = pd.concat([frame for _, frame in sizes.values()])
        build_table(model, items, key="item_key", output=tables)
        flags = [f"--item_table=wide:item_key:{tables}"]
        with ServerProcess("wide", model, flags) as server:
            groups = [
                (
                    f"wide, N = {size}",
                    [
                        predicting(title, server, payloads, CALLS)
                        for title, payloads in zip(
                            ("features sent", "by key"), zip(*pairs, strict=True), strict=True
                        )
                    ],
                )
                for size, (pairs, _) in sizes.items()
            ]
            measure_variants(groups, options.rounds)


if __name__ == "__main__":
    main()
