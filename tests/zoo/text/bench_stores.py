"""What is saved by texts that came before, and by a query that is sent once.

python -m tests.zoo.text.bench_stores [encode] [rank] [query]

encode, rank: texts or pairs of which about 35 % came before, drawn by Zipf, with the store and
without: texts per CPU second of the server. query: 12 words, 200 titles, the query once and with
every title: bytes and CPU of the server. The reranker's head is not trained, which costs the same.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from colcast.client import TextClient, encode_predict_request
from colcast.client._text_batches import strings
from colcast.loadtest.process import ProcessMeter
from colcast.loadtest.server_variants import servers
from colcast.loadtest.variants import Column, Variant, measure_variants, predicting
from colcast.server import ServerProcess
from colcast.zoo.text import encoder, late_interaction, reranker, weights

from .peer_environment import mixed_lengths

HITS = 0.35
ROUNDS = 8
WORKERS = "--num_workers=1"

RATE = Column("per CPU second", float, ".0f", compared=True)
OF_ALL = (
    Column("bytes", lambda it: sum(call.request_bytes for call in it.calls), ",.0f"),
    Column("CPU ms", lambda it: 1000 * it.server_cpu_seconds, ".1f", compared=True),
)

Requests = Sequence[Any]


def zipf(draws: int) -> np.ndarray:
    """Draws by Zipf, numbered from 0, from so many that about 35 % had been drawn before."""
    drawn = np.zeros(draws, int)
    for population in (int(draws * 1.2**n) for n in range(-15, 60)):
        shares = 1 / np.arange(1, population + 1)
        drawn = np.random.default_rng(7).choice(population, draws, p=shares / shares.sum())
        if len(np.unique(drawn)) / draws >= 1 - HITS:
            break
    return np.unique(drawn, return_inverse=True)[1]


Groups = Iterator[tuple[str, list[Variant]]]


def with_and_without(
    title: str, base_path: Path, flag: str, requests: Requests, ask: Callable[[str, Any], int]
) -> Groups:
    """The same requests, block by block in turn, to a server with a store and one without.

    Args:
      title: of the table.
      base_path: the model's.
      flag: the store's size.
      requests: what `ask` is to send.
      ask: (address, request) -> how many texts or pairs it had.
    """
    warm_up, blocks = requests[-5:], np.array_split(np.arange(len(requests) - 5), ROUNDS)

    def turn(number: int, server: ServerProcess) -> float:
        meter = ProcessMeter(server.pid)
        before = meter.cpu_seconds()
        sent = [requests[row] for row in blocks[number]] if number >= 0 else warm_up
        texts = sum(ask(server.target, request) for request in sent)
        return texts / (meter.cpu_seconds() - before)

    stores = {"without the store": f"{flag}=0", "with it": f"{flag}=67108864"}
    with servers("text", base_path, *([WORKERS, own] for own in stores.values())) as running:
        yield (
            title,
            [
                Variant(name, partial(turn, server=server))
                for name, server in zip(stores, running, strict=True)
            ],
        )


def encode_bench() -> Groups:
    """Requests of 32 texts."""
    drawn = zipf(6400)
    texts = mixed_lengths(int(drawn.max()) + 1)
    requests = [[texts[n] for n in block] for block in drawn.reshape(-1, 32)]

    def ask(address: str, request: list[str]) -> int:
        with TextClient(address, "text") as client:
            return len(client.encode(request))

    title = f"encode, {came_before(drawn):.0%} of texts came before"
    return with_and_without(title, encoder.ensure(), "--item_state_bytes", requests, ask)


def rank_bench(base_path: Path) -> Groups:
    """Queries that come again with the same 20 titles."""
    drawn = zipf(240)
    texts = [" ".join(text.split()[:12]) for text in mixed_lengths(int(drawn.max() + 1) * 21)]

    def ask(address: str, query: int) -> int:
        with TextClient(address, "text") as client:
            asked, *titles = texts[21 * query : 21 * (query + 1)]
            return len(client.rank(asked, titles).scores)

    title = f"rank, {came_before(drawn):.0%} of pairs came before"
    return with_and_without(title, base_path, "--pair_bytes", drawn.tolist(), ask)


def came_before(drawn: np.ndarray) -> float:
    """The share."""
    return 1 - len(np.unique(drawn)) / len(drawn)


def asked(title: str, base_path: Path, ways: dict[str, tuple[str, list[dict[str, Any]]]]) -> Groups:
    """One query asked in some ways: name -> signature, inputs per request."""
    with ServerProcess("text", base_path, [WORKERS, "--item_state_bytes=0"]) as server:
        yield (
            title,
            [
                predicting(
                    name,
                    server,
                    [encode_predict_request("text", signature, inputs) for inputs in requests],
                )
                for name, (signature, requests) in ways.items()
            ],
        )


def query_bench(reranker_path: Path) -> Groups:
    """12 words, 200 titles: late interaction and the cross-encoder."""
    texts = [" ".join(text.split()[:12]).encode() for text in mixed_lengths(201)]
    query, titles = texts[0], texts[1:]
    once = {"query": strings([query]), "title": strings(titles)}
    repeated = once | {"query": strings([query] * len(titles))}
    yield from asked(
        "late interaction, 200 titles",
        late_interaction.ensure(),
        {
            "the query once (columnar_late)": ("columnar_late", [once]),
            "with every title (columnar)": ("columnar", [repeated]),
        },
    )
    whole = {"query": strings([query]), "titles": strings(titles)}
    apart = [{"query": strings([query]), "titles": strings([title])} for title in titles]
    yield from asked(
        "cross-encoder, 200 titles",
        reranker_path,
        {
            "the query once (rank)": ("rank", [whole]),
            "with every title, a request each": ("rank", apart),
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    benches = ("encode", "rank", "query")
    parser.add_argument("what", nargs="*", choices=[*benches, []])
    what = parser.parse_args().what or benches
    model = weights.load(encoder.WORK_DIR)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        reranker.save(reranker.Reranker(model, reranker.start(model)), path / "1")
        if "encode" in what:
            measure_variants(encode_bench(), ROUNDS, (RATE,))
        if "rank" in what:
            measure_variants(rank_bench(path), ROUNDS, (RATE,))
        if "query" in what:
            measure_variants(query_bench(path), ROUNDS, OF_ALL)


if __name__ == "__main__":
    main()
