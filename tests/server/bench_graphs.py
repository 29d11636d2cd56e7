"""Server CPU of every model of the zoo by `--graph_optimization`, in turn.

    python -m tests.server.bench_graphs [--models ncf,texts] [--formats columnar,late] [--rounds 7]

One worker and no state stores, so that graphs run; ten requests in turn; medians, and shares of
`off` round by round. `--formats example` sends tf.Examples, to be read as `exact` says. `texts` and
`pairs` are the zoo's encoder and its late interaction, with 20 and 100 texts.
"""

import argparse
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from colcast.client import RankingClient
from colcast.client._encode import encode_predict_request
from colcast.client._text_batches import strings
from colcast.loadtest.formats import NO_STORES, encode
from colcast.loadtest.variants import zoo_rows
from colcast.loadtest.ways import compare_ways, predicting
from colcast.server import ServerProcess
from colcast.zoo.columnar import columnar
from colcast.zoo.registry import MODELS
from colcast.zoo.text import encoder, late_interaction

from ..zoo.text.peer_environment import mixed_lengths

MODES = ("off", "exact", "fast")
TEXTS = ("texts", "pairs")
DISTINCT = 10
_TURN_SECONDS = 0.25  # of server CPU, about
_FLAGS = ("--num_workers=1", "--pair_bytes=0", *NO_STORES)

Payloads = Callable[[ServerProcess, str, int], Sequence[bytes]]


def ranking(name: str) -> tuple[Path, Payloads]:
    """A ranking model's base path, and its requests."""

    def payloads(server: ServerProcess, wire_format: str, size: int) -> Sequence[bytes]:
        with RankingClient(server.target, name) as client:
            data = zoo_rows(name)(size, DISTINCT)
            return [encode(client, wire_format, one).payload for one in data]

    return columnar(MODELS[name].saved_model(), late=True), payloads


def reading(name: str) -> tuple[Path, Payloads]:
    """The same of a model of texts."""
    texts = [" ".join(text.split()[:12]).encode() for text in mixed_lengths(101)]

    def payloads(_: ServerProcess, wire_format: str, size: int) -> Sequence[bytes]:
        if name == "texts":
            inputs = {"texts": strings(texts[:size])}
            return [encode_predict_request(name, "encode", inputs)]
        late = wire_format == "late"
        query = strings(texts[-1:] if late else texts[-1:] * size)
        signature = "columnar_late" if late else "columnar"
        inputs = {"query": query, "title": strings(texts[:size])}
        return [encode_predict_request(name, signature, inputs)]

    return (encoder if name == "texts" else late_interaction).ensure(), payloads


def measure(name: str, formats: Sequence[str], sizes: Sequence[int], rounds: int) -> None:
    """Prints a line of a table for every format and number of candidates."""
    base_path, payloads = reading(name) if name in TEXTS else ranking(name)
    with TemporaryDirectory() as choices, ExitStack() as running:
        servers = [
            running.enter_context(
                ServerProcess(name, base_path, flags=[*_FLAGS, *_graphs(mode, choices)])
            )
            for mode in MODES
        ]
        for wire_format in formats[:1] if name == "texts" else formats:
            for size in sizes:
                if name in TEXTS and size > 100:
                    continue
                sent = payloads(servers[0], wire_format, size)
                one = predicting("", servers[0], sent)
                seconds = compare_ways([one], 1).item() / 1000
                calls = max(4, int(_TURN_SECONDS / max(seconds, 0.0001)))
                ways = [
                    predicting(mode, server, sent, calls)
                    for mode, server in zip(MODES, servers, strict=True)
                ]
                found = compare_ways(ways, rounds)
                shares = np.median(found / found[0], axis=1)
                print(
                    f"| {name} | {wire_format} | {size} |",
                    ", ".join(f"{value:.3g}" for value in np.median(found, axis=1)),
                    *(f"| {share:.2f}" for share in shares[1:]),
                    "|",
                    flush=True,
                )


def _graphs(mode: str, choices: str) -> tuple[str, ...]:
    return f"--graph_optimization={mode}", f"--graph_choices_directory={choices}"


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = (*MODELS, *TEXTS)
    parser.add_argument("--models", type=lambda text: text.split(","), default=names)
    parser.add_argument(
        "--formats", type=lambda text: text.split(","), default=("columnar", "late")
    )
    parser.add_argument("--sizes", type=lambda text: text.split(","), default=(20, 100, 500))
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    print("| model | format | N | off, exact, fast, ms | exact, share | fast |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for name in arguments.models:
        measure(name, arguments.formats, [*map(int, arguments.sizes)], arguments.rounds)


if __name__ == "__main__":
    main()
