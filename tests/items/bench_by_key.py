"""`wide` with all states kept: items by key against features sent.

    python -m tests.items.bench_by_key

One server; the ways take turns with the same ten requests. Server CPU per request, bytes, and the
shares of features sent.
"""

import argparse
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from colcast.client import encode_predict_request
from colcast.items import build_table
from colcast.loadtest.variants import measure_variants, predicting
from colcast.server import ServerProcess
from colcast.zoo.wide import WIDE, requests

SIZES, REQUESTS, CALLS = (20, 100, 500), 10, 100
NUMPY = {"int64": np.int64, "float32": np.float32, "string": object}


def columns_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows as columns of the model's dtypes."""
    made = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        if isinstance(values[0], str):
            values = [value.encode() for value in values]
        made[name] = np.array(values, NUMPY[WIDE.dtypes[name].name])
    return made


def request_pairs(size: int) -> tuple[list[tuple[bytes, bytes]], pd.DataFrame]:
    """Requests with features and by key, and the items of all of them."""
    found = islice(requests(WIDE, size, size), REQUESTS)
    pairs: list[tuple[bytes, bytes]] = []
    frames, next_key = [], size * 1_000_000
    for user, items in found:
        columns, once = columns_of(items), columns_of([user])
        keys = np.arange(next_key, next_key + len(items))
        next_key += len(items)
        frames.append(pd.DataFrame({"item_key": keys} | {n: list(c) for n, c in columns.items()}))
        by_key = once | {"item_key": keys}
        sent, keyed = (
            encode_predict_request("wide", "columnar_late", each)
            for each in (once | columns, by_key)
        )
        pairs.append((sent, keyed))
    return pairs, pd.concat(frames)


def main() -> None:
    """Prints a line for each size and way."""
    parser = argparse.ArgumentParser(description="Items by key on `wide`.")
    parser.add_argument("--model", type=Path, default=Path("build/zoo/wide_columnar"))
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        tables = Path(name)
        sizes = {size: request_pairs(size) for size in SIZES}
        items = pd.concat([frame for _, frame in sizes.values()])
        build_table(options.model, items, key="item_key", output=tables)
        flags = [f"--item_table=wide:item_key:{tables}"]
        with ServerProcess("wide", options.model, flags) as server:
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
