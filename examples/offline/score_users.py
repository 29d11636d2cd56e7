"""Ranks items for every user of a table, with Ray Data: Parquet in, Parquet out.

    cd build/wheels && pip install tensorflow-cpu==2.20.0 ./colcast_server-*$(uname -m).whl \
        "$(echo ./colcast-*.whl)[ray]"
    python score_users.py --model-base-path models/movies --users users/ --user-key user_id \
        --items items.parquet --item-key movie_id --output ranked/ --workers 4

Each of Ray's workers starts its own server and sends requests to it. A request has a user's columns
once and a batch of items; the server caches states (docs/stages.md). The users' table has a column
per user feature.
--candidates names a column with a list of item keys for each user; without it, all items are ranked
for every user. The output has a row per user: the key, the best items and their scores.

The table is scored block by block. Running the same command again scores only the unfinished
blocks. If a worker dies, Ray starts another, which scores its block again.
"""

import argparse
import atexit
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import blocks
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from blocks import DONE, Block, Job, begin, blocks_of, job_of, read, write

REQUIRED = object()
FLAG = "a further flag of each server"
OPTIONS = [
    ("model-base-path", Path, REQUIRED, "folder with a subfolder per version; uses the newest"),
    ("users", Path, REQUIRED, "a Parquet file, or a folder of them"),
    ("user-key", str, REQUIRED, "the users' column that identifies them in the output"),
    ("items", Path, REQUIRED, "a Parquet file with a column per feature"),
    ("item-key", str, REQUIRED, "the items' column with a unique key"),
    ("candidates", str, None, "the users' column with lists of item keys; default: all items"),
    ("output", Path, REQUIRED, "the folder for the rankings"),
    ("top", int, 100, "items per user; 0: all"),
    ("users-per-block", int, 1000, "a block is scored again if its worker dies"),
    ("items-per-request", int, 2000, "the most items in a request"),
    ("workers", int, os.cpu_count(), "number of workers; each has its own server"),
    (
        "address",
        str,
        None,
        "address of a Ray cluster, such as auto; its machines must share the paths",
    ),
]


class Scorer:
    """A worker that has a server and a client, and scores one block of users after another."""

    def __init__(self, job: Job) -> None:
        """Starts the server and waits until it serves the job's model version."""
        from colcast.client import RankingClient
        from colcast.server import ServerProcess

        self._job, self._size = job, job.items_per_request
        self._why_together = _why_together(job)
        items = pq.read_table(job.items)
        self._keys = items[job.item_key]
        self._rows = {key: row for row, key in enumerate(self._keys.to_pylist())}
        if len(self._rows) != len(self._keys):
            raise ValueError(f"{job.items}: {job.item_key!r} is not unique")
        self._stack = ExitStack()
        atexit.register(self._stack.close)
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "models").write_text(_config(job))
        models = f"--model_config_file={folder / 'models'}"
        server = self._stack.enter_context(ServerProcess(flags=[models, *job.flags]))
        self._stack.callback(_ends_with_us(server.pid).kill)
        self._client = self._stack.enter_context(
            RankingClient(server.target, "ranker", version=job.version, timeout_seconds=60)
        )
        schema = self._client.schema().columnar_signature()
        assert schema is not None, "the model takes no columns"
        self._features = set(schema.features)
        self._sent = items.select([name for name in items.column_names if name in self._features])
        self._everybodys = (
            [] if job.candidates else list(map(self._client.prepare, self._batches()))
        )

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Scores a block and writes it."""
        block = Block(**row)
        table = read(block)
        found = []
        for place, user in enumerate(table.to_pylist(), block.start):
            try:
                found.append(self._rank(user))
            except Exception as error:
                what = f"{type(error).__name__}: {error}"
                raise RuntimeError(f"{block.file}, row {place}: {what}") from error
        items = [self._keys.take(best).to_pylist() for best, _ in found]
        columns = {
            self._job.user_key: table[self._job.user_key],
            "items": pa.array(items, pa.list_(self._keys.type)),
            "scores": pa.array([scores for _, scores in found], pa.list_(pa.float32())),
        }
        write(pa.table(columns), Path(block.output))
        return {"users": block.rows}

    def _rank(self, user: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """The rows and scores of the best items, best first."""
        rows, batches = np.arange(len(self._keys)), self._everybodys
        if self._job.candidates:
            rows = np.array([self._row_of(key) for key in user[self._job.candidates]], np.int64)
            batches = self._batches(rows)
        features = {n: v for n, v in user.items() if n in self._features and v is not None}
        answers = [self._client.rank(features, batch).scores for batch in batches]
        scores = np.concatenate(answers) if answers else np.zeros(0, np.float32)
        best = np.argsort(-scores, kind="stable")[: self._job.top or None]
        return rows[best], scores[best]

    def _row_of(self, key: Any) -> int:
        if key not in self._rows:
            raise ValueError(f"no item {key!r} in {self._job.items}")
        return self._rows[key]

    def _batches(self, rows: np.ndarray | None = None) -> list[pa.Table]:
        """The items with these row numbers, or all items, in batches."""
        items, size = self._sent if rows is None else self._sent.take(rows), self._size
        if len(items) > size and self._why_together:
            raise ValueError(
                f"the model scores candidates together ({self._why_together}): {len(items):,} items"
                f" need --items-per-request {len(items)} or more, not {size}"
            )
        return [items.slice(start, size) for start in range(0, len(items), size)]


def _why_together(job: Job) -> str:
    """The reason why a user's candidates must be scored in one request; "" if they need not be."""
    record = Path(job.model_base_path, str(job.version), "assets.extra", "colcast.json")
    if not record.exists():
        return "the export recorded nothing"
    signatures = json.loads(record.read_text())["signatures"].values()
    found = [one["independence"] for one in signatures if one.get("independence")]
    each = [of[name] for of in found for name in of if name in ("columnar", "columnar_late")]
    dependent = [one["why_not"] for one in each if not one["rows"]]
    return "" if each and not dependent else (dependent or ["the export recorded nothing"])[0]


def _config(job: Job) -> str:
    """A server configuration with one model version; versions published later are ignored."""
    path = json.dumps(job.model_base_path)
    model = f'name: "ranker" base_path: {path} model_platform: "tensorflow"'
    policy = f"model_version_policy {{ specific {{ versions: {job.version} }} }}"
    return f"model_config_list {{ config {{ {model} {policy} }} }}"


def _ends_with_us(pid: int) -> subprocess.Popen[bytes]:
    """Starts a shell that kills `pid` when this process ends, which closes the shell's input."""
    command = ["sh", "-c", 'read _; kill -9 "$0"', str(pid)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)


def score(job: Job, options: argparse.Namespace) -> None:
    """Scores the unfinished blocks; prints a line on standard error for each."""
    every = list(blocks_of(job, options.output))
    left = [block for block in every if not block.finished]
    _say(f"{len(every)} blocks, {len(every) - len(left)} of them finished before")
    if left:
        _run(job, left, options)
    if missing := [block.output for block in every if not block.finished]:
        raise RuntimeError(f"not finished: {', '.join(missing)}")
    users = sum(block.rows for block in every)
    (options.output / DONE).write_text(json.dumps({"blocks": len(every), "users": users}))
    _say(f"{users:,} users ranked: {options.output}")


def _run(job: Job, left: Sequence[Block], options: argparse.Namespace) -> None:
    """Scores blocks with Ray's workers."""
    import ray

    ray.cloudpickle.register_pickle_by_value(blocks)  # workers on other machines lack blocks.py
    if options.address:
        ray.init(options.address)
    else:
        ray.init(num_cpus=options.workers, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    workers = min(options.workers, len(left))
    done = ray.data.from_items([asdict(block) for block in left], override_num_blocks=len(left))
    done = done.map(
        Scorer,
        fn_constructor_args=(job,),
        compute=ray.data.ActorPoolStrategy(size=workers),
        num_cpus=1,
    )
    began, users = time.monotonic(), 0
    for number, row in enumerate(done.iter_rows(), 1):
        users += row["users"]
        rate = users / (time.monotonic() - began)
        _say(f"{number} of {len(left)} blocks, {users:,} users, {rate:,.0f} per second")


def _alone() -> None:
    """Restricts Ray to the loopback interface. Ray reads these settings when it is imported."""
    # If this is 0, Ray uses the loopback address as its own.
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    os.environ.setdefault("AUTOSCALER_METRIC_PORT", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Scores a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, kind, default, text in OPTIONS:
        required = default is REQUIRED
        default = None if required else default
        parser.add_argument(f"--{name}", type=kind, default=default, required=required, help=text)
    parser.add_argument("--flag", action="append", default=["--num_workers=1"], help=FLAG)
    options = parser.parse_args()
    if not options.address:
        _alone()
    try:
        job = job_of(options)
        begin(job, options.output)
        score(job, options)
    except (ValueError, OSError, RuntimeError) as error:
        _say(f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
