"""A table of a million items of 60 features: building it, its size, lookups, a delta under load.

    python -m tests.items.bench_table
    python -m tests.items.bench_table --items 100000

The features are `wide`'s: int64, float and string in turn. The table is built from a Parquet file
in a process of its own, whose peak memory is its own. The native server loads it beside `wide`.
Lookups are of 500 random keys, in C++ (`ninja -C build/server lookup_benchmark`, which needs
Debian's liblmdb-dev), beside LMDB's. Under load, requests of 100 keys are sent one after the other,
some of them while a delta of 10,000 items is applied.
"""

import argparse
import multiprocessing
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from colcast.client import RankingClient, ServerError
from colcast.items import build_delta, build_table
from colcast.loadtest.formats import NO_STATES
from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.recording import Recording
from colcast.loadtest.variants import LATENCY, Variant, for_seconds, measure_variants, one_by_one
from colcast.loadtest.zoo_models import exported
from colcast.server import ServerProcess
from colcast.zoo import wide

from .records import declared, model

BATCH, STRIDE, CHANGED, TURNS, TURN_SECONDS, CANDIDATES = 50_000, 7919, 10_000, 4, 4.0, 100
LOOKUPS = Path("build/server/bin/lookup_benchmark")
_DEFAULTS = {"int64": 0, "float32": 0.0, "string": ""}
_DTYPES = ("int64", "float32", "string")
FEATURES = {f"item_{number:03}": _DTYPES[number % 3] for number in range(60)}


def batches(items: int, seed: int = 1) -> Iterator[Any]:
    """Record batches of random items, none of which repeats."""
    random = np.random.default_rng(seed)
    texts = pa.array([f"i{number}" for number in range(1_000_000)])
    for start in range(0, items, BATCH):
        rows = min(BATCH, items - start)
        columns: dict[str, Any] = {"item_id": np.arange(start, start + rows) * STRIDE}
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


def make(folder: Path, items: int) -> None:
    """Writes the Parquet file that the table is built from."""
    with pq.ParquetWriter(folder / "items.parquet", next(batches(1)).schema) as writer:
        for batch in batches(items):
            writer.write_batch(batch)


def build(folder: Path) -> tuple[float, int]:
    """Seconds, and the peak of resident memory in bytes, beyond what was imported."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    build_table(folder / "model", folder / "items.parquet", key="item_id", output=folder / "table")
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return seconds, (peak - before) * 1024


def flags_of(folder: Path) -> list[str]:
    """A server's, that has the table."""
    config = folder / "tables.config"
    config.write_text(
        f'table {{ model: "wide" key: "item_id" base_path: "{folder / "table"}" '
        "poll_wait_seconds: 0.1 }"
    )
    return [f"--item_table_config_file={config}"]


def serve(folder: Path, base_path: Path, with_table: bool) -> tuple[float, dict[str, int]]:
    """Seconds until a server answers for `wide`, and its resident memory in bytes."""
    user, items = next(wide.requests(wide.WIDE, 10, 1))
    asked = {"item_keys": [0, STRIDE]} if with_table else {"items": items}
    flags = flags_of(folder) if with_table else []
    started = time.perf_counter()
    with ServerProcess("wide", base_path, [*NO_STATES, *flags]) as server:
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


def make_deltas(folder: Path, items: int) -> list[Path]:
    """Deltas, built beside the table."""
    beside = folder / "beside" / "1"
    beside.mkdir(parents=True)
    os.link(folder / "table" / "1" / "table.safetensors", beside / "table.safetensors")
    made = []
    for number in range(TURNS):
        changed = next(batches(min(CHANGED, items), seed=10 + number)).to_pandas()
        made.append(build_delta(folder / "beside", changed))
    return made


def settle(meter: ProcessMeter) -> None:
    """Returns once the server has nothing to do."""
    while True:
        before = meter.cpu_seconds()
        time.sleep(1)
        if meter.cpu_seconds() - before < 0.02:
            return


def under_load(folder: Path, base_path: Path, items: int) -> None:
    """Requests by key, with a delta applied meanwhile and without, in turn."""
    deltas = make_deltas(folder, items)
    random = np.random.default_rng(3)
    user, _ = next(wide.requests(wide.WIDE, 10, 1))
    flags = [*flags_of(folder), f"--item_state_bytes={1 << 30}"]
    with (
        ServerProcess("wide", base_path, flags) as server,
        RankingClient(server.target, "wide", timeout_seconds=10) as client,
    ):

        def ask() -> None:
            keys = (random.integers(0, items, CANDIDATES) * STRIDE).tolist()
            client.rank(user, item_keys=keys)

        def without(_: int) -> Recording:
            settle(ProcessMeter(server.pid))
            return one_by_one(ask, for_seconds(TURN_SECONDS))

        def during(number: int) -> Recording:
            settle(ProcessMeter(server.pid))
            if number >= 0:
                delta = deltas[number]
                shutil.move(delta, folder / "table" / "1" / delta.name)
            return one_by_one(ask, for_seconds(TURN_SECONDS))

        variants = [Variant("nothing applied", without), Variant(f"a delta of {CHANGED:,}", during)]
        measure_variants([(f"{CANDIDATES} keys", variants)], TURNS, LATENCY)


def report(folder: Path, items: int) -> None:
    """Measures and prints."""
    model(
        folder / "model",
        **{n: declared(dtype=d, default=[_DEFAULTS[d]]) for n, d in FEATURES.items()},
    )
    apart(make, folder, items)
    seconds, peak = apart(build, folder)
    table = folder / "table" / "1" / "table.safetensors"
    size = table.stat().st_size
    print(f"build: {items / seconds:,.0f} rows/s, {peak / 2**20:,.0f} MiB at most", flush=True)
    print(f"file: {size / 2**20:,.0f} MiB, {size / items:,.0f} bytes per item", flush=True)
    if LOOKUPS.exists():
        (folder / "lmdb").mkdir()
        print(subprocess.check_output([LOOKUPS, table, folder / "lmdb"], text=True), end="")
    base_path = exported("wide")
    seconds, before = serve(folder, base_path, with_table=False)
    longer, after = serve(folder, base_path, with_table=True)
    more = {kind: after[kind] - before[kind] for kind in after}
    each = {kind: value / items for kind, value in more.items()}
    print(f"server: ready {longer - seconds:.2f} s later; per item {each['RssAnon']:.1f} bytes of")
    print(f"its own and {each['RssFile']:.1f} of the file resident", flush=True)
    under_load(folder, base_path, items)


def main() -> None:
    """Measures a table in a folder that is removed in the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        report(Path(name), options.items)


if __name__ == "__main__":
    main()
