"""Finds rewrites of a model's graphs that pay off within a tolerance, for --graph_choices.

Every set of rewrites is served beside the exact graphs. Both receive the same requests in every
format that the model accepts; scores are compared one by one, and servers are timed alternately.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
from colcast.cli.console import report_console
from colcast.loadtest.measure.correctness import (
    Refused,
    overlap,
    reference_answers,
    relative_difference,
)
from colcast.loadtest.measure.meters import ProcessMeter
from colcast.loadtest.measure.run import Options, with_clients
from colcast.loadtest.measure.series import Series, Target, prepare
from colcast.loadtest.send import traffic
from colcast.loadtest.send.connection import Outputs
from colcast.loadtest.send.formats import NO_STATES, signature_named
from colcast.loadtest.tune.tuning import served
from colcast.server import ServerProcess

FILE = "graphs.json"

_PRODUCTS = "bfloat16 products"
_FORMATS = ("example", "repeated", "columnar", "late")
_REFUSED = re.compile(r'no graph choice applied, graphs are exact: (.*); this is "([^"]+)"')
_TIMEOUT_SECONDS = 60.0
# The least share of rows that must be among the 10, or 100, highest scores of both answers.
_LEAST_OVERLAP = 0.9
_LEAST_GAIN, _MOST_LOSS = 0.97, 1.03
_ROUNDS = 7


@dataclass
class Proof:
    """The measurements of a set of rewrites.

    Attributes:
      rewrites: the names of the rewrites.
      why_not: why the set may not be served; empty if it may.
      difference: the largest difference of a score, as a share of the output's largest score.
      overlap: the lowest share of rows that are among the 10, or 100, highest scores of both.
      cpu: format -> server CPU as a share of the exact graphs' CPU.
    """

    rewrites: Sequence[str]
    why_not: str = ""
    difference: float = 0.0
    overlap: float = 1.0
    cpu: dict[str, float] = field(default_factory=dict)

    def compare(self, expected: Sequence[Outputs], got: Sequence[Outputs]) -> None:
        """Adds the differences between two lists of answers."""
        for one, other in zip(expected, got, strict=True):
            for name, values in one.items():
                self.difference = max(self.difference, relative_difference(values, other[name]))
                if values.ndim and values.size == len(values) and values.dtype != object:
                    tops = [overlap(values, other[name], k) for k in (10, 100) if k < len(values)]
                    self.overlap = min(self.overlap, *tops, 1.0)

    def judge(self, tolerance: float) -> None:
        """Sets `why_not` if scores differ too much, or if the set is slower or gains nothing."""
        if self.difference > tolerance or self.overlap < _LEAST_OVERLAP:
            self.why_not = "scores differ too much"
        elif max(self.cpu.values()) > _MOST_LOSS:
            self.why_not = "it is slower"
        elif self.rewrites == (_PRODUCTS,) and np.mean([*self.cpu.values()]) > _LEAST_GAIN:
            self.why_not = "it gains nothing"

    def __str__(self) -> str:
        name = " and ".join(self.rewrites)
        if not self.cpu:
            return f"{name}: {self.why_not}"
        cpu = ", ".join(f"{form} {share:.2f}" for form, share in self.cpu.items())
        figures = f"differences up to {self.difference:.2g}, top overlap {self.overlap:.2f}"
        return f"{name}: {self.why_not or 'proved'}: {figures}; server CPU: {cpu}"


def run(options: SimpleNamespace) -> int:
    """Tunes a model's graphs, prints the measurements and writes the choice.

    Returns:
      0; 1 if no rewrite may be served or none saves anything; then no file is written.
    """
    console = report_console(stderr=options.json)
    options.output.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        tuner = _Tuner(options, Path(folder) / FILE)
        with tuner.serving(*NO_STATES) as exact:
            choice = tuner.begin(exact)
            for rewrites in rewrite_sets(_latest(options.model_base_path)):
                proof = tuner.prove({**choice, "rewrites": rewrites}, exact)
                if proof.cpu:
                    proof.judge(options.tolerance)
                console.print(str(proof), markup=False)
                if not proof.why_not:
                    break
            else:
                console.print("nothing written: the exact graphs serve best")
                return 1
    text = json.dumps({**choice, "rewrites": rewrites, "proof": asdict(proof)}, indent=1)
    file = options.output / FILE
    file.write_text(text + "\n")
    console.print(f"--graph_optimization=fast --graph_choices={file}", soft_wrap=True)
    if options.json:
        print(text)
    return 0


class _Tuner:
    def __init__(self, options: SimpleNamespace, file: Path) -> None:
        self._options, self._file = options, file
        self._series: Sequence[Series] = ()
        self._expected: Sequence[Sequence[Outputs]] = ()

    def serving(self, *flags: str) -> ServerProcess:
        """Serves the model with the choice in the file; without a file, with its exact graphs."""
        choice = "--graph_optimization=fast", f"--graph_choices={self._file}"
        return served(self._options, *flags, *choice)

    def begin(self, exact: ServerProcess) -> dict[str, Any]:
        """Records the answers of the exact graphs; returns a choice without rewrites."""
        found = _REFUSED.search(exact.log())
        assert found, exact.log()
        target = Target("", exact.target)
        model = self._options.model
        data = traffic.load(self._options, lambda: target.client(model, _TIMEOUT_SECONDS))
        self._series, _ = prepare([target], model, _FORMATS, data)
        self._expected = [reference_answers(exact.target, it.requests) for it in self._series]
        answering = _exported(_latest(self._options.model_base_path))
        asked = {signature_named(it.requests[0]) for it in self._series}
        return {"key": found[2], "signatures": sorted(answering or asked)}

    def prove(self, choice: Mapping[str, Any], exact: ServerProcess) -> Proof:
        """Compares and times the model with a choice."""
        proof = Proof(choice["rewrites"])
        # The server's log says "products in bfloat16", for example.
        said = [" {2} in {0}".format(*name.partition(" ")) for name in proof.rewrites]
        self._file.write_text(json.dumps(choice))
        try:
            with self.serving(*NO_STATES) as server:
                if refused := _REFUSED.search(server.log()):
                    return Proof(proof.rewrites, refused[1])
                if any(name not in server.log() for name in said):
                    return Proof(proof.rewrites, "the graphs have nothing to rewrite")
                self._compare(server, proof)
                proof.cpu = self._time(exact, server)
            with self.serving() as server:  # the second comparison reads states cached by the first
                self._compare(server, proof)
                self._compare(server, proof)
        except Refused as error:
            return Proof(proof.rewrites, str(error))
        finally:
            self._file.unlink()
        return proof

    def _compare(self, server: ServerProcess, proof: Proof) -> None:
        for it, expected in zip(self._series, self._expected, strict=True):
            proof.compare(expected, reference_answers(server.target, it.requests))

    def _time(self, exact: ServerProcess, server: ServerProcess) -> dict[str, float]:
        meters = {it.target: ProcessMeter(it.pid, it.target) for it in (exact, server)}
        pairs = [replace(it, target=Target("", to)) for it in self._series for to in meters]
        calls = len(self._series[0].requests)
        options = Options(windows=_ROUNDS, window_calls=calls, keep_every=0)
        found = [it.recording.server_cpu_ms for it in with_clients(pairs, 1, meters, options)]
        shares = (fast / slow for slow, fast in zip(found[::2], found[1::2], strict=True))
        return dict(zip((it.format for it in self._series), shares, strict=True))


def _latest(base_path: Path) -> Path:
    return max(base_path.glob("[0-9]*"), key=lambda it: int(it.name))


def rewrite_sets(version: Path) -> Iterator[Sequence[str]]:
    """The sets of rewrites to try; the first that may be served is chosen, even if not the fastest.

    Sets that save memory come first. int8 tables are tried only if the export wrote them.
    """
    if (version / "int8").is_dir():
        yield "int8 tables", _PRODUCTS
        yield ("int8 tables",)
    yield (_PRODUCTS,)


def _exported(version: Path) -> set[str]:
    """The signatures that the exporter made from the default one."""
    try:
        record = json.loads((version / "assets.extra" / "colcast.json").read_text())
    except OSError:
        return set()
    return set(record["signatures"].get("columnar", {}).get("independence", ()))
