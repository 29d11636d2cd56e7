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
from colcast.loadtest.connection import Connection, Request
from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.turns import in_turn
from colcast.server import ServerProcess
from colcast.zoo.wide import WIDE, requests

SIZES, REQUESTS, CALLS, WARM_UP = (20, 100, 500), 10, 100, 60
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


def measure(server: ServerProcess, pairs: list[tuple[bytes, bytes]], size: int, rounds: int) -> Any:
    """Milliseconds of server CPU and bytes per request, of each way."""
    meter = ProcessMeter(server.pid)

    def one(way: int, turn: int) -> tuple[float, float]:
        messages = [Request(pair[way], size) for pair in pairs]
        calls = CALLS if turn else WARM_UP
        with Connection(server.target) as connection:
            before = meter.cpu_seconds()
            for number in range(calls):
                answer = connection.call(messages[number % REQUESTS])
                assert answer.code == "OK", answer.message
            spent = meter.cpu_seconds() - before
        return 1000 * spent / calls, float(np.mean([len(pair[way]) for pair in pairs]))

    found = in_turn((0, 1), one, rounds + 1)
    return [np.median(np.array(each[1:]), axis=0) for each in found]


def main() -> None:
    """Prints a line for each size."""
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
            print(f"{len(items)} items; server CPU per request, features sent and by key")
            for size, (pairs, _) in sizes.items():
                (sent, sent_bytes), (keyed, key_bytes) = measure(
                    server, pairs, size, options.rounds
                )
                print(
                    f"N = {size}: {sent:.3f} ms, {keyed:.3f} ms: {keyed / sent:.2f}; "
                    f"{sent_bytes:.0f} bytes, {key_bytes:.0f}: {key_bytes / sent_bytes:.3f}"
                )


if __name__ == "__main__":
    main()
