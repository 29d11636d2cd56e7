"""Ranks real MovieLens candidates end to end, then sends the same requests in four formats.

python -m colcast.bench.demo
"""

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
from colcast.bench.measure import Line, head
from colcast.bench.measure import measure as in_turn
from colcast.bench.requests import zoo_data
from colcast.cli.console import report_console
from colcast.client import RankingClient
from colcast.export import export_saved_model
from colcast.export.cli import silence_tensorflow
from colcast.items import build_table
from colcast.loadtest.measure.budget import interruptible
from colcast.loadtest.measure.meters import Meter, ProcessMeter
from colcast.loadtest.measure.run import Options
from colcast.loadtest.measure.series import Target, prepare
from colcast.loadtest.send.formats import FORMATS_ALONE, NO_STATES
from colcast.server import ServerProcess
from colcast.zoo.columnar import USER_FEATURES
from colcast.zoo.movielens import train
from colcast.zoo.movielens.features import Candidates, RankingRequest
from rich.table import Table

MODEL = "movielens"
_KEY = "movie_id"
_USERS = (405, 6, 214)
_SIZES = (50, 200, 1000)
_EXACT = ("example", "repeated", "columnar")  # their scores are bit-identical
_FORMATS = (*_EXACT, "late")
_CLIENTS, _ROUNDS, _CALLS = 4, 10, 20
_DISTINCT_REQUESTS = 10  # requests per size, each for a different user

console = report_console()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the demo; returns 130 if it was interrupted, 1 if scores differ between formats."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work-dir", type=Path, default=train.WORK_DIR)
    args = parser.parse_args(argv)
    silence_tensorflow()
    try:
        with interruptible():
            return run(args.work_dir)
    except KeyboardInterrupt:
        console.print("\ninterrupted; the server is stopped")
        return 130


def run(work_dir: Path) -> int:
    """Trains (or reuses) a model, exports, serves, ranks and measures; files go to `work_dir`."""
    say("Training a ranking model on MovieLens-100K (kept for the next run)")
    data, trained = train.ensure(work_dir, progress=lambda line: console.print(f"  {line}"))
    console.print(f"  AUC on {trained.held_out_rows:,} held-out ratings: {trained.auc:.3f}")
    say("Exporting it: columnar signatures are added, the tf.Example signature stays")
    columnar = work_dir / "columnar"
    shutil.rmtree(columnar, ignore_errors=True)
    report = export_saved_model(
        work_dir / "model" / "1", columnar / "1", user_features=[USER_FEATURES], late=True
    )
    report.print(console)
    say("Starting the native server")
    candidates = Candidates(data)
    with ServerProcess(MODEL, columnar, FORMATS_ALONE) as server:
        console.print(f"  {server.target}, process {server.pid}")
        with RankingClient(server.target, MODEL) as client:
            for user in _USERS:
                console.print(ranking_table(client, candidates.of(user)))
        lines = measure(server)
    by_key = same_by_key(work_dir, candidates)
    console.print(
        "late computes the user's part once: equal up to rounding. Here TensorFlow parses\n"
        "the tf.Examples and nothing is cached; by default the server reads them as columns\n"
        "and caches states (docs/late.md, docs/stages.md)."
    )
    figures = work_dir / "demo.json"
    figures.write_text(json.dumps([asdict(line) for line in lines], indent=2))
    console.print(f"Figures: {figures}")
    different = [line for line in lines if line.title in _EXACT and line.difference != 0]
    for line in different:
        console.print(f"[red]{line.title} differs from example: {line.group}")
    return 1 if different or not by_key else 0


def say(what: str) -> None:
    console.print(f"[bold]{what}")


def ranking_table(client: RankingClient, request: RankingRequest) -> Table:
    """Ranks the user's unrated movies and returns a table of the ten best."""
    ranking = client.rank(user=request.user_row, items=request.items)
    user = request.user
    table = Table(
        title=f"User {user.id} ({user.age}, {user.gender}, {user.occupation}): "
        f"the best of {len(request.items)} movies not rated yet",
        title_justify="left",
    )
    table.add_column("score", justify="right")
    table.add_column("title")
    table.add_column("year", justify="right")
    table.add_column("genres")
    for row, score in ranking.top(10):
        movie = request.movies[row]
        table.add_row(f"{score:.4f}", movie.title, str(movie.year), ", ".join(movie.genres))
    return table


def same_by_key(work_dir: Path, candidates: Candidates) -> bool:
    """Ranks by movie ids; returns whether the scores equal those of requests with features."""
    say("Building a table of all movies, which the server finds by id")
    output = work_dir / "movies"
    shutil.rmtree(output, ignore_errors=True)
    movies = pa.Table.from_pylist(candidates.all_items())
    build_table(work_dir / "columnar", movies, key=_KEY, output=output)
    flags = (*NO_STATES, f"--item_table={MODEL}:{_KEY}:{output.resolve()}")
    equal = True
    with (
        ServerProcess(MODEL, work_dir / "columnar", flags) as server,
        RankingClient(server.target, MODEL, target="columnar", timeout_seconds=30) as client,
    ):
        for user in _USERS:
            request = candidates.of(user)
            keys = {_KEY: [movie.id for movie in request.movies]}
            ranking = client.rank(request.user_row, item_keys=keys)
            sent = client.rank(request.user_row, request.items)
            same = bool((ranking.scores == sent.scores).all())
            console.print(
                f"  user {user}: the best of {len(request.items)} movies by id are"
                f" {ranking.top_keys(3)}; scores {'identical' if same else '[red]differ[/]'},"
                f" {len(client.encode(request.user_row, item_keys=keys)):,} bytes in place of"
                f" {len(client.encode(request.user_row, request.items)):,}",
            )
            equal = equal and same
    return equal


def measure(server: ServerProcess) -> list[Line]:
    """Compares the formats, which take turns at each number of candidates."""
    say(f"Comparing formats, with {_CLIENTS} clients that wait for their answers")
    for line in head():
        say_line(line)
    lines: list[Line] = []
    options = Options(windows=_ROUNDS, window_calls=_CALLS, keep_every=0)
    meters: dict[str, Meter] = {server.target: ProcessMeter(server.pid)}
    for size in _SIZES:
        data = zoo_data(MODEL, size, _DISTINCT_REQUESTS)
        series, left_out = prepare([Target("", server.target)], MODEL, _FORMATS, data)
        if left_out:
            raise RuntimeError("; ".join(map(str, left_out)))
        lines += in_turn(f"{MODEL}, N = {size}", series, _CLIENTS, meters, options, say_line)
    return lines


def say_line(line: str) -> None:
    console.print(line, markup=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
