"""A table of a million items of 60 features: building it, its size, and looking rows up.

    python -m tests.items.bench_table
    python -m tests.items.bench_table --items 100000 --server

The features are `wide`'s: int64, float and string in turn. Each step is a process of its own, whose
peak memory is its own. With --server the native server loads the table beside `wide`. Lookups are
of 500 random keys, in Python: the rows by their keys, then their 60 columns; beside it LMDB's
(`pip install lmdb`), which gives a row as one blob of fixed size, that NumPy takes apart.
"""

import argparse
import json
import multiprocessing
import resource
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from colcast.items import ItemTable, build_table

from .records import declared, model

BATCH, KEYS, ROUNDS = 50_000, 500, 50
_DEFAULTS = {"int64": 0, "float32": 0.0, "string": ""}
_DTYPES = ("int64", "float32", "string")
FEATURES = {f"item_{number:03}": _DTYPES[number % 3] for number in range(60)}


def batches(items: int) -> Iterator[Any]:
    """Record batches of random items, none of which repeats."""
    random = np.random.default_rng(1)
    texts = pa.array([f"i{number}" for number in range(1_000_000)])
    for start in range(0, items, BATCH):
        rows = min(BATCH, items - start)
        columns: dict[str, Any] = {"item_id": np.arange(start, start + rows) * 7919}
        for name, dtype in FEATURES.items():
            numbers = random.integers(0, 1_000_000, rows)
            if dtype == "float32":
                columns[name] = random.normal(size=rows).astype(np.float32)
            else:
                columns[name] = texts.take(pa.array(numbers)) if dtype == "string" else numbers
        yield pa.RecordBatch.from_pydict(columns)


def apart(step: Callable[..., Any], *args: Any) -> Any:
    """What a step returns, run in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(step, args)


def make(items: int) -> float:
    """Seconds that the batches take to make."""
    started = time.perf_counter()
    for _ in batches(items):
        pass
    return time.perf_counter() - started


def build(folder: Path, items: int) -> tuple[float, int]:
    """Seconds, the batches included, and the peak of resident memory in bytes."""
    started = time.perf_counter()
    build_table(folder / "model", batches(items), key="item_id", output=folder / "table")
    seconds = time.perf_counter() - started
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def random_keys(items: int) -> list[list[int]]:
    """Keys that the table has, for each round."""
    random = np.random.default_rng(2)
    return (random.integers(0, items, (ROUNDS, KEYS)) * 7919).tolist()


def look_up(folder: Path, items: int) -> float:
    """Microseconds of a lookup of some keys in the table, columns and all."""
    table = ItemTable(folder / "table").table
    tensors, keys, index = table.container.tensors, table.keys, table.index
    taken = []
    for wanted in random_keys(items):
        started = time.perf_counter()
        rows = np.array([index.find(keys, key) for key in wanted])
        for name, dtype in FEATURES.items():
            if dtype == "string":
                offsets, data = (tensors[f"column/{name}/{part}"] for part in ("offsets", "bytes"))
                bounds = zip(offsets[rows].tolist(), offsets[rows + 1].tolist(), strict=True)
                _ = [data[start:end].tobytes() for start, end in bounds]
            else:
                _ = tensors[f"column/{name}"][rows]
        taken.append(time.perf_counter() - started)
    return 1e6 * median(taken)


def lmdb_look_up(folder: Path, items: int) -> float | None:
    """The same of LMDB, filled with the table's rows; None where it is not installed."""
    try:
        import lmdb
    except ModuleNotFoundError:
        return None
    kinds = {"int64": "<i8", "float32": "<f4", "string": "S8"}
    row = np.dtype([(name, kinds[dtype]) for name, dtype in FEATURES.items()])
    database = lmdb.open(str(folder / "lmdb"), map_size=1 << 34, sync=False)
    for batch in batches(items):
        rows = np.empty(batch.num_rows, row)
        for name in FEATURES:
            rows[name] = batch[name].to_numpy(zero_copy_only=False)
        data, keys = rows.tobytes(), batch["item_id"].to_pylist()
        with database.begin(write=True) as writing:
            for place, key in enumerate(keys):
                at = place * row.itemsize
                writing.put(struct.pack(">q", key), data[at : at + row.itemsize], append=True)
    taken = []
    for wanted in random_keys(items):
        started = time.perf_counter()
        with database.begin(buffers=True) as reading:
            blobs = [reading.get(struct.pack(">q", key)) for key in wanted]
            found = np.frombuffer(b"".join(blobs), row)
            for name in FEATURES:
                _ = found[name].copy()
        taken.append(time.perf_counter() - started)
    return 1e6 * median(taken)


def serve(folder: Path, with_table: bool) -> tuple[float, dict[str, int]]:
    """Seconds until a server answers for `wide`, and its resident memory in bytes."""
    from colcast.client import RankingClient, ServerError
    from colcast.loadtest.formats import NO_STORES
    from colcast.server import ServerProcess
    from colcast.zoo import wide
    from colcast.zoo.columnar import columnar

    base_path = columnar(wide.ensure(wide.WIDE), late=True)
    user, items = next(wide.requests(wide.WIDE, 10, 1))
    asked = {"item_keys": [0, 7919]} if with_table else {"items": items}
    flags = [f"--item_table=wide:item_id:{folder / 'table'}"] if with_table else []
    started = time.perf_counter()
    with ServerProcess("wide", base_path, [*NO_STORES, *flags]) as server:
        with RankingClient(server.target, "wide", timeout_seconds=10) as client:
            while True:
                try:
                    client.rank(user, **asked)
                    break
                except ServerError:
                    if time.perf_counter() - started > 300:
                        raise
        seconds = time.perf_counter() - started
        status = Path(f"/proc/{server.pid}/status").read_text()
    told = dict(line.split(":", 1) for line in status.splitlines())
    kinds = ("RssAnon", "RssFile")
    return seconds, {kind: int(told[kind].split()[0]) * 1024 for kind in kinds}


def report(folder: Path, items: int, served: bool) -> dict[str, Any]:
    """Measures and prints."""
    model(
        folder / "model",
        **{n: declared(dtype=d, default=[_DEFAULTS[d]]) for n, d in FEATURES.items()},
    )
    found: dict[str, Any] = {"items": items, "make_seconds": apart(make, items)}
    seconds, peak = apart(build, folder, items)
    size = (folder / "table" / "1" / "table.safetensors").stat().st_size
    found |= {"build_seconds": seconds, "build_peak_bytes": peak, "file_bytes": size}
    found |= {"lookup_us": apart(look_up, folder, items)}
    found |= {"lmdb_lookup_us": apart(lmdb_look_up, folder, items)}
    rate = items / (seconds - found["make_seconds"])
    print(f"build: {rate:,.0f} rows/s, {peak / 2**20:,.0f} MiB at most", flush=True)
    print(f"file: {size / 2**20:,.0f} MiB, {size / items:,.0f} bytes per item")
    print(f"{KEYS} lookups in Python: {found['lookup_us']:,.0f} us", end="")
    other = found["lmdb_lookup_us"]
    print(f", LMDB {other:,.0f} us" if other else "; LMDB is not installed", flush=True)
    if served:
        seconds, before = serve(folder, with_table=False)
        longer, after = serve(folder, with_table=True)
        more = {kind: after[kind] - before[kind] for kind in after}
        found |= {"load_seconds": longer - seconds, "resident": more}
        each = {kind: value / items for kind, value in more.items()}
        print(
            f"server: ready {longer - seconds:.2f} s later; per item {each['RssAnon']:.1f} bytes of"
        )
        print(f"its own and {each['RssFile']:.1f} of the file resident, of {size / items:,.0f}")
    return found


def main() -> None:
    """Measures a table in a folder that is removed in the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--server", action="store_true", help="load it in the native server")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        found = report(Path(name), options.items, options.server)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
