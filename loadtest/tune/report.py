"""Writes the files and the text of `colcast tune` about a search."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from colcast.loadtest.measure.recording import finite
from colcast.loadtest.measure.search import Ended, Sla, Window
from colcast.loadtest.tune.climb import Climbed, Setting
from rich.console import Console

FLAGS = "server.flags"


@dataclass(frozen=True)
class Tuned:
    """A search and its result.

    Attributes:
      climbed: the result of the climb.
      windows: the windows of each setting, in order; the last setting may have been cut short.
      sla: the latency target.
      ended: why the search ended.
    """

    climbed: Climbed
    windows: Mapping[tuple[float, ...], Sequence[Window]]
    sla: Sla
    ended: Ended = Ended.BY_ITSELF


def flagfile(model: str, tuned: Tuned) -> str:
    """The best setting in the form of the server's --flagfile."""
    head = [
        f"# {tuned.climbed.figure:,.0f} requests per second with {tuned.sla}: {model}",
        f"# started with {Setting.start(tuned.climbed.best.knobs)}",
    ]
    if tuned.ended is not Ended.BY_ITSELF:
        head.append(f"# the search was ended early by {tuned.ended}")
    return "\n".join([*head, *tuned.climbed.best.flags]) + "\n"


def write(tuned: Tuned, model: str, folder: Path) -> list[Path]:
    """Writes and returns tune.json and, if settings were compared, the best as `FLAGS`.

    A setting that was cut short is in tune.json under `unfinished`.
    """
    best, compared = tuned.climbed.best, len(tuned.climbed.tried) > 1

    def setting(values: tuple[float, ...]) -> dict[str, object]:
        return {
            "flags": Setting(best.knobs, values).flags,
            "windows": finite(tuned.windows[values]),
        }

    tried = tuned.climbed.tried
    found = {
        "target": str(tuned.sla),
        "ended_by": tuned.ended,
        "best": best.flags if compared else None,
        "rate": tuned.climbed.figure,
        "tried": [setting(values) | {"rate": rate} for values, rate in tried.items()],
        "unfinished": [setting(values) for values in tuned.windows if values not in tried],
    }
    contents = {"tune.json": json.dumps(found, indent=1, allow_nan=False)}
    if compared:
        contents[FLAGS] = flagfile(model, tuned)
    (folder / FLAGS).unlink(missing_ok=True)
    for name, content in contents.items():
        (folder / name).write_text(content, encoding="utf-8")
    return [folder / name for name in contents]


def show(tuned: Tuned, console: Console) -> None:
    """Prints the start, the best setting, and whether the search was cut short."""
    climbed = tuned.climbed
    start = Setting.start(climbed.best.knobs)
    began = climbed.tried.get(start.values, 0.0)
    if tuned.ended is not Ended.BY_ITSELF:
        console.print(f"the search was ended early by {tuned.ended}")
    if not climbed.tried:
        console.print("no setting was measured completely")
        return
    if not climbed.figure:
        console.print(f"no setting meets {tuned.sla}")
        return
    if len(climbed.tried) == 1:
        console.print(
            f"one setting tried: {start}: {began:,.0f} requests per second with {tuned.sla}; "
            f"nothing to compare it with, so {FLAGS} is not written"
        )
        return
    times = f", {climbed.figure / began:.2f} times as many" if began else ""
    console.print(
        f"start: {start}: {began:,.0f} requests per second with {tuned.sla}\n"
        f"best: {climbed.best}: {climbed.figure:,.0f}{times}; "
        f"{len(climbed.tried)} settings tried",
    )
