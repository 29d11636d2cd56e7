"""Candidates that are encoded once for many users."""

import threading
from dataclasses import replace
from typing import Any

from colcast.client._settings import ClientSettings
from colcast.client.columns._batch import Batch, item_batch, send_equal_rows_once
from colcast.client.columns._encode import encode_inputs
from colcast.client.columns._inputs import table_of_items
from colcast.client.request._distinct import send_distinct_rows
from colcast.client.request._targets import Plan, column_tensors, index_tensors, plan_of_columns


class PreparedItems:
    """The result of `RankingClient.prepare`, passed to `rank` instead of the items.

    Do not change the items afterwards: they are read again when another model version or target
    needs another form. Threads and clients may share it.
    """

    def __init__(self, items: Any) -> None:
        self.items = items
        self._lock = threading.Lock()
        self._batches: dict[Any, tuple[Plan, Batch]] = {}

    def batch(self, plan: Plan, settings: ClientSettings) -> Batch:
        """The items' columns, checked and encoded for a plan."""
        key = (id(plan), settings.policies, settings.dedupe)
        with self._lock:
            if key not in self._batches:
                while len(self._batches) >= _KEPT_PLANS:
                    del self._batches[next(iter(self._batches))]
                self._batches[key] = plan, self._encoded(plan, settings)
            return self._batches[key][1]

    def _encoded(self, plan: Plan, settings: ClientSettings) -> Batch:
        table = table_of_items(self.items, plan.inputs)
        batch = item_batch(plan.features, table, settings.policies)
        if settings.dedupe == "auto":
            batch = send_equal_rows_once(batch)
        batch = send_distinct_rows(plan, batch)
        plan = plan_of_columns(plan, batch)
        ours = {n: c for n, c in batch.columns.items() if not plan.features[n].one_row}
        encoded = {
            name: encode_inputs(column_tensors(plan, plan.features[name], column, batch.rows))
            for name, column in ours.items()
        }
        for name, tensor in index_tensors(batch).items():
            encoded[name] = encode_inputs({name: tensor})
        return replace(batch, encoded=encoded)


_KEPT_PLANS = 4  # per PreparedItems
