"""A plan for a terminal and for programs: the table, what was measured, what was assumed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from colcast.capacity.costs import Costs
from colcast.capacity.measured import Measured
from colcast.capacity.plan import Demand, Model, Plan
from colcast.capacity.service import Service
from rich.console import Console
from rich.table import Table

_AS_MEASURED = 0.05  # a hit rate so near to a measured one is no extrapolation


@dataclass(frozen=True)
class Report:
    """A plan and what it rests on.

    Attributes:
      demand: what was asked.
      model: what was simulated.
      costs: what a request costs.
      results: what was measured.
      plans: one for each way to divide requests that can keep the target.
      impossible: why the others cannot.
      replica_rate: the highest rate of one replica within the target.
      flags: of every replica.
    """

    demand: Demand
    model: Model
    costs: Costs
    results: Sequence[Measured]
    plans: Sequence[Plan]
    impossible: Sequence[str]
    replica_rate: float
    flags: Sequence[str]

    @property
    def highest_measured(self) -> float:
        """The highest rate of an open loop that one server was measured at."""
        stretches = [one for result in self.results for one in result.stretches]
        return max((one.rate for one in stretches if not one.clients), default=0.0)

    @property
    def extrapolated(self) -> list[str]:
        """Where the measurement of one server ends."""
        found = [
            f"{one.routing.title}: {one.replicas} replicas; one server was measured"
            for one in self.plans
        ]
        for one in self.plans:
            if one.replica_rate > self.highest_measured:
                found.append(
                    f"{one.routing.title}: {one.replica_rate:,.0f} per second and replica; "
                    f"{_rate(self.highest_measured)} was the highest measured"
                )
            if self.model.users and self._is_new(one.hit_rate):
                shares = ", ".join(f"{100 * share:.0f} %" for share in self.costs.measured_shares)
                found.append(
                    f"{one.routing.title}: {100 * one.hit_rate:.1f} % of users found; measured "
                    f"were {shares}, in between costs are mixed"
                )
        return found

    def _is_new(self, hit_rate: float) -> bool:
        return all(abs(hit_rate - share) > _AS_MEASURED for share in self.costs.measured_shares)

    @property
    def assumed(self) -> list[str]:
        """What the simulation takes for granted."""
        model, costs = self.model, self.costs
        found = [
            "requests come by a Poisson process; a replica answers first come, first served, with "
            f"{model.workers} workers",
            *_service("a hit" if model.users else "a request", costs.hit),
        ]
        if model.users:
            found += _service("a miss", costs.miss)
            found.append(
                f"{model.users}; a replica keeps {model.states or 0:,} of their states by S3-FIFO; "
                f"{100 * model.first_visits():.1f} % of the measured requests are first visits"
            )
        found.append(
            "no latency is longer than the 99.9th percentile measured without waiting; whoever "
            "divides the calls costs no time; replicas share nothing and are as fast as the one "
            "measured"
        )
        if self.demand.spare:
            found.append(
                "after a replica is lost its users have become known to others: until then there "
                "are more misses"
            )
        return [*found, *costs.notes]

    def as_json(self) -> dict[str, Any]:
        """In plain values."""
        return {
            "rate": self.demand.rate,
            "sla_p99_ms": self.demand.p99_ms,
            "spare": self.demand.spare,
            "flags": list(self.flags),
            "one_replica_per_second": self.replica_rate,
            "plans": [
                {**asdict(one), "routing": one.routing.title, "hit_rate": self._known(one.hit_rate)}
                | {"lost_hit_rate": self._known(one.lost_hit_rate)}
                for one in self.plans
            ],
            "impossible": list(self.impossible),
            "hit": _service_json(self.costs.hit),
            "miss": _service_json(self.costs.miss),
            "checked": [asdict(one) for one in self.costs.comparisons],
            "highest_measured_per_second": self.highest_measured,
            "extrapolated": self.extrapolated,
            "assumed": self.assumed,
            "left_out": [line for one in self.results for line in one.left_out],
        }

    def _known(self, hit_rate: float) -> float | None:
        return hit_rate if self.model.users else None

    def tell(self, console: Console) -> None:
        """Prints it."""
        spare = f", {self.demand.spare} to spare" if self.demand.spare else ""
        target = f"p99 <= {self.demand.p99_ms:g} ms"
        console.print(
            f"{_rate(self.demand.rate)} with {target}{spare}; one replica alone carries "
            f"{self.replica_rate:,.0f}",
            highlight=False,
        )
        console.print(self._table())
        console.print(f"each with {' '.join(self.flags)}", highlight=False, markup=False)
        if self.costs.comparisons:
            console.print(self._checked())
        lines = {
            "not possible": self.impossible,
            "left out": [line for one in self.results for line in one.left_out],
            "beyond what was measured": self.extrapolated,
            "assumed": self.assumed,
        }
        for title, texts in lines.items():
            if texts:
                console.print(
                    f"{title}:",
                    *(f"- {text}" for text in texts),
                    sep="\n",
                    markup=False,
                    highlight=False,
                )

    def _table(self) -> Table:
        table = Table("", title_justify="left")
        heads = ["replicas", "users found", "CPU ms", "workers busy", "p99 ms"]
        lost = ["users found", "p99 ms"] if self.demand.spare else []
        for head in [*heads, *(f"{head}, {self.demand.spare} lost" for head in lost)]:
            table.add_column(head, justify="right")
        for one in self.plans:
            cells = [str(one.replicas), self._share(one.hit_rate), f"{one.cpu_ms:.3g}"]
            cells += [f"{100 * one.busy:.0f} %", f"{one.p99_ms:.1f}"]
            if lost:
                cells += [self._share(one.lost_hit_rate), f"{one.lost_p99_ms:.1f}"]
            table.add_row(one.routing.title, *cells)
        return table

    def _checked(self) -> Table:
        """What one server was measured at, and what is simulated of it."""
        table = Table(title="one server under load", title_justify="left")
        for head in ("per second", "p99 ms", "simulated"):
            table.add_column(head, justify="right")
        for one in sorted(self.costs.comparisons, key=lambda one: one.rate):
            table.add_row(f"{one.rate:,.0f}", f"{one.measured_ms:.1f}", f"{one.simulated_ms:.1f}")
        return table

    def _share(self, hit_rate: float) -> str:
        return f"{100 * hit_rate:.1f} %" if self.model.users else "as measured"


# Implementation details follow.


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f} per second"


def _service(what: str, service: Service) -> list[str]:
    return [
        f"{what} takes {service.latency_ms(50):.3g} ms (p50) to {service.latency_ms(99):.3g} ms "
        f"(p99) without waiting ({service.calls:,} calls), costs {service.cpu_ms:.3g} ms of CPU, "
        f"and occupies a worker for {service.factor:.2f} times that"
    ]


def _service_json(service: Service) -> dict[str, Any]:
    return {**asdict(service), "occupied_ms": service.occupied_ms}
