"""Server CPU of every model of the zoo by `--graph_optimization`, in turn.

    python -m tests.server.bench_graphs [--models ncf,texts] [--formats columnar,late] [--rounds 7]

One worker and no state caches, so that graphs run; ten requests in turn; medians, and shares of
`off` round by round. `--formats example` sends tf.Examples, to be read as `exact` says. `texts` and
`pairs` are the zoo's encoder and its late interaction, with 20 and 100 texts.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, product
from tempfile import TemporaryDirectory

from colcast.client import encode_predict_request
from colcast.client._text_batches import strings
from colcast.loadtest.formats import NO_STATES
from colcast.loadtest.server_variants import servers
from colcast.loadtest.variants import Variant, measure_variants, predicting
from colcast.loadtest.zoo_models import exported, zoo_payloads
from colcast.server import ServerProcess
from colcast.zoo.registry import MODELS
from colcast.zoo.text import encoder, late_interaction

from ..zoo.text.peer_environment import mixed_lengths

MODES = ("off", "exact", "fast")
TEXTS = ("texts", "pairs")
DISTINCT = 10
_TURN_SECONDS = 0.25  # of server CPU, about
_FLAGS = ("--num_workers=1", "--pair_bytes=0", *NO_STATES)

Payloads = Callable[[ServerProcess, str, int], Sequence[bytes]]


def ranking(name: str) -> Payloads:
    """The requests of a ranking model."""
    return lambda server, form, size: zoo_payloads(server.target, name, form, size, DISTINCT)


def reading(name: str) -> Payloads:
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

    return payloads


def groups(
    name: str, formats: Sequence[str], sizes: Sequence[int]
) -> Iterator[tuple[str, list[Variant]]]:
    """A model in every format and number of candidates."""
    if name in TEXTS:
        base_path, payloads = (
            (encoder if name == "texts" else late_interaction).ensure(),
            reading(name),
        )
        sizes = [size for size in sizes if size <= 100]
        formats = formats[:1] if name == "texts" else formats
    else:
        base_path, payloads = exported(name), ranking(name)
    with TemporaryDirectory() as choices:
        flags = [*_FLAGS, f"--graph_choices_directory={choices}"]
        modes = ([*flags, f"--graph_optimization={mode}"] for mode in MODES)
        with servers(name, base_path, *modes) as running:
            for wire_format, size in product(formats, sizes):
                sent = payloads(running[0], wire_format, size)
                once = predicting("", running[0], sent)
                seconds = [once.turn(number).server_cpu_ms for number in (-1, 0)][1] / 1000
                calls = max(4, int(_TURN_SECONDS / max(seconds, 0.0001)))
                yield (
                    f"{name}, {wire_format}, N = {size}",
                    [
                        predicting(mode, server, sent, calls)
                        for mode, server in zip(MODES, running, strict=True)
                    ],
                )


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
    sizes = [*map(int, arguments.sizes)]
    models = (groups(name, arguments.formats, sizes) for name in arguments.models)
    measure_variants(chain.from_iterable(models), arguments.rounds)


if __name__ == "__main__":
    main()
