"""Rows per slice, tuned for each model and target: DeepRecSys's table on the native server.

python -m colcast.loadtest.bench_tuning --models ncf,wide_deep

Every request is split into slices of at most so many rows, which workers take by themselves: the
static baselines of the paper (25 rows; the largest request over the cores) against climbing from
small slices up (Gupta et al., ISCA 2020, figures 9 and 10). Requests arrive by a Poisson process,
their sizes have a heavy tail; targets are the paper's, half of it and half as much again, all three
measured on the same servers. For the medium one the climb is repeated with log-normal sizes, and
what it found is measured on the heavy tail.
"""

import argparse
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

from colcast.loadtest.charts import Line, line_chart, standalone
from colcast.loadtest.formats import NO_STATES, RequestData
from colcast.loadtest.search import Sla
from colcast.loadtest.sizes import draw, parse_sizes
from colcast.loadtest.traffic import zoo_requests
from colcast.loadtest.tuning import Load, Model, highest_rates, prepared
from colcast.loadtest.variants import markdown_head, markdown_row
from colcast.loadtest.zoo_models import exported
from colcast.zoo.papers import PAPERS
from colcast.zoo.registry import MODELS

HEAVY_TAIL = "pareto:20:1:1000"
LOGNORMAL = "lognormal:40:0.9"
STATIC_ROWS = 25
_ROWS = (8, 16, 32, 64, 128, 256, 512, 1024)
_TARGETS = {"medium": 1.0, "low": 0.5, "high": 1.5}
_WITH_OTHER_SIZES = "medium"
_FALLEN = 0.95  # of the best rate so far
_BATCHING = """\
max_batch_size {{ value: 100000 }}
enable_large_batch_splitting {{ value: true }}
max_execution_batch_size {{ value: {rows} }}
max_enqueued_batches {{ value: 100000 }}
"""


@dataclass(frozen=True)
class Tuned:
    """One model with one target.

    Attributes:
      model: its name in the zoo.
      target: "low", "medium" or "high".
      p95_ms: what that is.
      static: requests per second in slices of 25 rows.
      largest_over_cores: the same, in slices of the largest request's rows over the cores.
      rows: per slice, as tuned.
      tuned: requests per second with those.
      curve: requests per second by rows per slice, as far as the climb went.
      other_rows: per slice, as tuned for log-normal sizes; 0 where that was not measured.
      other: requests per second with those, on the sizes with a heavy tail.
    """

    model: str
    target: str
    p95_ms: float
    static: float
    largest_over_cores: float
    rows: int
    tuned: float
    curve: Mapping[int, float]
    other_rows: int = 0
    other: float = 0.0


def measured(name: str, folder: Path, options: SimpleNamespace) -> list[Tuned]:
    """Both baselines and the climb, one after the other: a line per target."""
    zoo = MODELS[name]
    assert zoo.p95_target_ms is not None
    targets = options.targets.split(",")
    slas = [Sla(95, zoo.p95_target_ms * _TARGETS[target]) for target in targets]
    model = Model(name, exported(name), ("--enable_batching", *NO_STATES))
    heavy = Load(
        prepared(model, ["late"], _requests(name, HEAVY_TAIL, options)), slas, options.seconds
    )
    largest = max(request.rows for request in heavy.requests)
    static = highest_rates(model, heavy, [_flag(STATIC_ROWS, folder)])
    heavy = replace(heavy, start=max(heavy.start, static[0] / 2))  # from where others search
    per_core = _flag(largest // len(os.sched_getaffinity(0)), folder)
    over_cores = highest_rates(model, heavy, [per_core])
    curves = _climbed(model, heavy, folder)
    lines = [
        Tuned(name, target, sla.milliseconds, *rates, best := _best(curve), curve[best], curve)
        for target, sla, rates, curve in zip(
            targets, slas, zip(static, over_cores, strict=True), curves, strict=True
        )
    ]
    if name in options.other_sizes.split(",") and _WITH_OTHER_SIZES in targets:
        place = targets.index(_WITH_OTHER_SIZES)
        lines[place] = _with_other_sizes(lines[place], model, heavy, folder, options)
    return lines


def _with_other_sizes(
    line: Tuned, model: Model, heavy: Load, folder: Path, options: SimpleNamespace
) -> Tuned:
    """The same line, and what is found on log-normal sizes."""
    heavy = replace(heavy, slas=[Sla(95, line.p95_ms)])
    lognormal = replace(
        heavy, requests=prepared(model, ["late"], _requests(line.model, LOGNORMAL, options))
    )
    (curve,) = _climbed(model, lognormal, folder)
    rows = _best(curve)
    if rows in line.curve:
        return replace(line, other_rows=rows, other=line.curve[rows])
    (other,) = highest_rates(model, heavy, [_flag(rows, folder)])
    return replace(line, other_rows=rows, other=other)


def _requests(name: str, sizes: str, options: SimpleNamespace) -> Sequence[RequestData]:
    return zoo_requests(name, draw(parse_sizes(sizes), options.distinct, seed=0).tolist(), seed=0)


def _flag(rows: int, folder: Path) -> str:
    file = folder / f"rows_{rows}.pbtxt"
    file.write_text(_BATCHING.format(rows=rows))
    return f"--batching_parameters_file={file}"


def _climbed(model: Model, load: Load, folder: Path) -> list[dict[int, float]]:
    """From small slices up until the rates of all targets fall: for each, all that was tried.

    One step down may be noise; two are a fall.
    """
    curves: list[dict[int, float]] = [{} for _ in load.slas]
    for rows in _ROWS:
        start = max(load.start, max(curves[0].values(), default=0.0) / 2)
        rates = highest_rates(model, replace(load, start=start), [_flag(rows, folder)])
        for curve, rate in zip(curves, rates, strict=True):
            curve[rows] = rate
        if all(_has_fallen(curve) for curve in curves):
            break
    return curves


def _has_fallen(curve: Mapping[int, float]) -> bool:
    last = list(curve.values())[-2:]
    return len(curve) > len(last) and max(last) < _FALLEN * max(curve.values())


def _best(curve: Mapping[int, float]) -> int:
    return max(curve, key=lambda rows: curve[rows])


def curves(lines: Sequence[Tuned]) -> str:
    """Requests per second by rows per slice, a line per target, for one model: an SVG document."""
    drawn = [
        Line(
            f"{line.target}, p95 {line.p95_ms:g} ms",
            place,
            [(_ROWS.index(rows), rate) for rows, rate in sorted(line.curve.items())],
        )
        for place, line in enumerate(lines)
    ]
    chart = line_chart(
        drawn,
        x_title=f"{lines[0].model}: rows per slice",
        y_title="requests per second",
        x_ticks=[(place, str(rows)) for place, rows in enumerate(_ROWS)],
    )
    return standalone(chart)


HEADINGS = ("25 rows", "largest / cores", "tuned", "rows", "gain", "log-normal (rows)")


def told(lines: Sequence[Tuned]) -> Iterator[str]:
    """A Markdown table with a row per model and target."""
    yield from markdown_head(HEADINGS)
    for line in lines:
        best = max(line.static, line.largest_over_cores)
        cells = [line.model, f"p95 {line.p95_ms:g} ms", f"{line.static:,.0f}"]
        cells += [f"{line.largest_over_cores:,.0f}", f"{line.tuned:,.0f}", f"{line.rows}"]
        cells.append(", ".join(_times(line.tuned, other) for other in (line.static, best)))
        cells.append(f"{line.other:,.0f} ({line.other_rows})" if line.other_rows else "")
        yield markdown_row(cells)


def _times(figure: float, other: float) -> str:
    return f"{figure / other:.2f}x" if other else "-"


def main(argv: Sequence[str] | None = None) -> None:
    """Measures, prints the table and writes its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(PAPERS), help="of the zoo's paper models")
    parser.add_argument("--targets", default=",".join(_TARGETS))
    parser.add_argument(
        "--other-sizes", default=",".join(PAPERS), help="models for which they are tried"
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="of a window")
    parser.add_argument("--distinct", type=int, default=100, help="different requests")
    parser.add_argument("--output", type=Path, default=Path("build/bench"))
    options = SimpleNamespace(**vars(parser.parse_args(argv)))
    lines: list[Tuned] = []
    options.output.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        for name in options.models.split(","):
            of_model = measured(name, Path(folder), options)
            lines += of_model
            print(*told(of_model), sep="\n", flush=True)
            figures = json.dumps([asdict(line) for line in lines], indent=1)
            (options.output / "tuning.json").write_text(figures)
            (options.output / f"tuning_{name}.svg").write_text(curves(of_model))
    print(*told(lines), sep="\n")


if __name__ == "__main__":
    main()
