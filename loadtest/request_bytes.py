"""What Locust does not count: the bytes of requests, over all workers."""

from typing import Any


class RequestBytes:
    """Adds up request bytes by name, sends them from workers to the master, prints the means."""

    def __init__(self, environment: Any) -> None:
        """Counts for the users of this Locust environment."""
        self._environment = environment
        self.totals: dict[str, list[int]] = {}  # name -> [calls, bytes]

    def listen(self) -> None:
        """Hooks into Locust's events; `/request-bytes` of its web page tells the totals."""
        hooks = self._environment.events
        hooks.request.add_listener(self.count)
        hooks.report_to_master.add_listener(self.report)
        hooks.worker_report.add_listener(self.take)
        hooks.test_start.add_listener(lambda **_: self.totals.clear())
        hooks.quitting.add_listener(lambda **_: self.print())
        if self._environment.web_ui:
            self._environment.web_ui.app.route("/request-bytes")(self.means)

    def count(self, name: str, context: dict[str, Any], **_: Any) -> None:
        """A request of this process."""
        self._add(name, 1, context.get("request_bytes", 0))

    def report(self, client_id: str, data: dict[str, Any]) -> None:
        """On a worker: what was counted since the last report."""
        data["request_bytes"] = dict(self.totals)
        self.totals.clear()

    def take(self, client_id: str, data: dict[str, Any]) -> None:
        """On the master: a worker's report."""
        for name, (calls, size) in data.get("request_bytes", {}).items():
            self._add(name, calls, size)

    def means(self) -> dict[str, float]:
        """Mean bytes of a request by name."""
        return {name: size / calls for name, (calls, size) in self.totals.items() if calls}

    def print(self) -> None:
        """The means, at the end of a run; a worker has none left."""
        for name, mean in self.means().items():
            print(f"{name}: {mean:,.0f} bytes per request on average")

    def _add(self, name: str, calls: int, size: int) -> None:
        total = self.totals.setdefault(name, [0, 0])
        total[0] += calls
        total[1] += size
