"""Candidates of few shops and campaigns: their columns repeated, and sent as distinct rows.

    python -m tests.server.bench_domains
    python -m tests.server.bench_domains --baseline PATH/colcast_model_server

The model of tests/models/shops.py with 20 features and a layer of 64 for each domain. With
--baseline another server answers the repeated columns, too, from an export without domains. Server
CPU per request and bytes; servers and ways take turns. "zipf": which shop and campaign a candidate
has is drawn by Zipf's law (exponent 1.1), and so is which of 2,000 items it is, anew per request.
"""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from colcast.client import encode_predict_request
from colcast.export import export_saved_model
from colcast.loadtest.variants import Variant, measure_variants, predicting
from colcast.server import ServerProcess

from ..models import shops

OF_A_KIND, CALLS = 5, 40
SIZES = ((500, 50, 5), (500, 150, 20), (100, 30, 5))
NOTHING_KEPT = ("--user_state_bytes=0", "--item_state_bytes=0")
Columns = dict[str, Any]


class Pool:
    """Rows of every domain that requests draw from."""

    def __init__(self, candidates: int, rows: int, campaigns: int, zipf: bool) -> None:
        self._random = np.random.default_rng(7)
        self._zipf, self._candidates = zipf, candidates
        self._counts = {"item": 2000 if zipf else candidates, "shop": rows, "campaign": campaigns}
        self._rows = {
            domain: shops.rows(domain, count, self._random, OF_A_KIND)
            for domain, count in {**self._counts, "user": 1}.items()
        }

    def request(self) -> tuple[Columns, dict[str, Any]]:
        """Columns with a row for each candidate, and which row of its domain each has."""
        index = {domain: self._draw(domain) for domain in self._counts}
        columns = dict(self._rows["user"])
        for domain, of in index.items():
            columns |= {name: column[of] for name, column in self._rows[domain].items()}
        return columns, index

    def _draw(self, domain: str) -> Any:
        count = self._counts[domain]
        if domain == "item" and not self._zipf:
            return np.arange(self._candidates)
        shares = 1 / np.arange(1, count + 1) ** (1.1 if self._zipf else 0.0)
        return self._random.choice(count, self._candidates, p=shares / shares.sum())


def distinct(columns: Columns, index: dict[str, Any]) -> Columns:
    """The same with distinct rows of shops and campaigns."""
    made = dict(columns)
    for domain in ("shop", "campaign"):
        _, first, row_to = np.unique(index[domain], return_index=True, return_inverse=True)
        own = [name for name in columns if name.startswith(f"{domain}_")]
        made |= {name: columns[name][first] for name in own} | {f"row_to_{domain}": row_to}
    return made


def groups(folder: Path, baseline: str | None) -> Iterator[tuple[str, list[Variant]]]:
    """Each size, with and without Zipf, with nothing kept and with states kept."""
    for flags in (NOTHING_KEPT, ()):
        with ExitStack() as stack:
            server = stack.enter_context(ServerProcess("shops", folder / "domains", flags))
            ways = [("repeated", server, False), ("distinct", server, True)]
            if baseline:
                other = ServerProcess("shops", folder / "plain", flags, executable=baseline)
                ways.insert(0, ("baseline, repeated", stack.enter_context(other), False))
            for size, zipf in product(SIZES, (False, True)):
                pool = Pool(*size, zipf)
                requests = [pool.request() for _ in range(CALLS if zipf else 1)]
                title = "N = {}, {} shops, {} campaigns".format(*size)
                yield (
                    f"{title}{', zipf' * zipf}; {'nothing' if flags else 'states'} kept",
                    [
                        predicting(
                            title,
                            server,
                            [encoded(distinct(*it) if once else it[0]) for it in requests],
                            CALLS,
                        )
                        for title, server, once in ways
                    ],
                )


def encoded(columns: Columns) -> bytes:
    """A request."""
    return encode_predict_request("shops", "columnar_late", columns)


def main() -> None:
    """Prints a line for each way and size."""
    parser = argparse.ArgumentParser(description="Distinct rows of shops and campaigns.")
    parser.add_argument("--baseline", help="a colcast_model_server to compare with")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shops.save(folder / "model", OF_A_KIND)
        late = {"user_features": ["user_*"], "late": True}
        export_saved_model(folder / "model", folder / "plain" / "1", **late)
        export_saved_model(
            folder / "model", folder / "domains" / "1", **late, domains=shops.PATTERNS
        )
        measure_variants(groups(folder, options.baseline), options.rounds)


if __name__ == "__main__":
    main()
