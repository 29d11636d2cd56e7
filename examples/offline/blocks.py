"""Divides the users into blocks, and finds out which blocks are finished.

A block is written under a temporary name and renamed when it is complete, so a block whose file
exists is finished.
"""

import argparse
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

JOB, DONE = "_job.json", "_SUCCESS"


@dataclass(frozen=True)
class Job:
    """The values that determine the output; a restart with other values is refused.

    Workers use the same paths. `sources` has the size and modification time of every input file.
    """

    model_base_path: str
    version: int
    users: str
    user_key: str
    items: str
    item_key: str
    candidates: str | None
    top: int
    users_per_block: int
    items_per_request: int
    flags: list[str]
    sources: dict[str, list[int]]


@dataclass(frozen=True)
class Block:
    """A range of rows in a file of users, and the path to write their rankings to."""

    file: str
    start: int
    rows: int
    output: str

    @property
    def finished(self) -> bool:
        """Whether the block's file exists, with all its rows."""
        try:
            return pq.read_metadata(self.output).num_rows == self.rows
        except (FileNotFoundError, pa.ArrowInvalid):
            return False


def read(block: Block) -> pa.Table:
    """Reads a block's rows; skips the row groups that contain none of them."""
    file, first, parts = pq.ParquetFile(block.file), 0, []
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        start, end = max(block.start - first, 0), min(block.start + block.rows - first, rows)
        if start < end:
            parts.append(file.read_row_group(group).slice(start, end - start))
        first += rows
    return pa.concat_tables(parts)


def write(table: pa.Table, path: Path) -> None:
    """Writes a hidden file and then renames it, so that readers see the whole table or nothing."""
    half = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with half.open("wb") as file:
        pq.write_table(table, file)
        file.flush()
        os.fsync(file.fileno())
    half.replace(path)


def job_of(options: argparse.Namespace) -> Job:
    """The job that the options describe.

    Raises:
        ValueError: there are no files to read or no model to serve.
    """
    version = _version(options)
    model = options.model_base_path / str(version) / "saved_model.pb"
    files = [*_user_files(options.users), options.items, model]
    wanted = [(files[0], options.user_key), (options.items, options.item_key)]
    wanted += [(files[0], options.candidates)] if options.candidates else []
    for path, column in wanted:
        if column not in (there := pq.read_schema(path).names):
            raise ValueError(f"{path}: no column {column!r}; the columns are {', '.join(there)}")
    return Job(
        str(options.model_base_path.absolute()),
        version,
        str(options.users.absolute()),
        options.user_key,
        str(options.items.absolute()),
        options.item_key,
        options.candidates,
        options.top,
        options.users_per_block,
        options.items_per_request,
        options.flag,
        {str(path): [path.stat().st_size, path.stat().st_mtime_ns] for path in files},
    )


def _version(options: argparse.Namespace) -> int:
    """The model version of the existing job; for a new job, the newest version."""
    if (known := options.output / JOB).exists():
        return int(json.loads(known.read_text())["version"])
    versions = [
        int(path.parent.name)
        for path in options.model_base_path.glob("*/saved_model.pb")
        if path.parent.name.isdecimal()
    ]
    if not versions:
        raise ValueError(f"{options.model_base_path}: contains no version")
    return max(versions)


def _user_files(users: Path) -> list[Path]:
    files = sorted(users.glob("*.parquet")) if users.is_dir() else [users]
    if not files:
        raise ValueError(f"{users}: contains no .parquet file")
    return files


def blocks_of(job: Job, output: Path) -> Iterator[Block]:
    """Yields all blocks of the job, in the order of the users."""
    number = 0
    for file in _user_files(Path(job.users)):
        total = pq.read_metadata(file).num_rows
        for start in range(0, total, job.users_per_block):
            rows = min(job.users_per_block, total - start)
            path = output.absolute() / f"part-{number:06}.parquet"
            yield Block(str(file.absolute()), start, rows, str(path))
            number += 1


def begin(job: Job, output: Path) -> None:
    """Makes the output folder, or checks that an existing one belongs to this job.

    Raises:
        ValueError: the folder belongs to another job.
    """
    output.mkdir(parents=True, exist_ok=True)
    known = output / JOB
    if not known.exists():
        if any(not path.name.startswith(".") for path in output.iterdir()):
            raise ValueError(f"{output}: not empty, and not the output of an unfinished job")
        half = output / f".{JOB}"
        half.write_text(json.dumps(asdict(job), indent=1))
        half.replace(known)
    before, now = json.loads(known.read_text()), asdict(job)
    if changed := [name for name in now if before.get(name) != now[name]]:
        raise ValueError(
            f"{output}: belongs to a job with other {', '.join(changed)}; choose another --output"
        )
    for half in output.glob(".part-*"):
        half.unlink()
