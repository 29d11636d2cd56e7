"""Who divides calls among servers, and how: what benchmarks compare."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from colcast.server import ServerProcess

from .envoy import Envoy, arguments_for, render


class Way(NamedTuple):
    """Who divides the calls, and how.

    Attributes:
        title: for the table.
        envoy: the arguments of Envoy's configuration; None: the client alone does it.
        round_robin: in place of Envoy's hashing.
        load_bound: of the client.
        keys: whether requests say whose they are.
    """

    title: str
    envoy: tuple[str, ...] | None = None
    round_robin: bool = False
    load_bound: float = 1.5
    keys: bool = True


WAYS = (
    Way("Envoy, round robin", (), round_robin=True),
    Way("Envoy, by user", ("--balance-factor=0",)),
    Way("Envoy, by user, at most 1.5 times the mean", ()),
    Way("client, fewest in flight", keys=False),
    Way("client, by user", load_bound=math.inf),
    Way("client, by user, at most 1.5 times the mean"),
)


BY_ENVOY, BY_CLIENT = WAYS[2], WAYS[5]
"""As deploy/envoy has it, and as the client does it by default."""


@contextmanager
def target_of(way: Way, servers: Sequence[ServerProcess]) -> Iterator[tuple[Any, int]]:
    """What a client is given as address, and Envoy's process id or 0."""
    if way.envoy is None:
        yield [server.target for server in servers], 0
        return
    configuration = render(*arguments_for(servers), *way.envoy)
    hashing = configuration.index("      load_balancing_policy:")
    end = configuration.index("      common_lb_config:")
    if way.round_robin:
        plain = "      load_balancing_policy: &by_user { policies: [{ typed_extension_config: {"
        plain += " name: envoy.load_balancing_policies.round_robin, typed_config: {"
        kind = "envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin"
        plain += f' "@type": type.googleapis.com/{kind} }} }} }}] }}\n'
        configuration = configuration[:hashing] + plain + configuration[end:]
    configuration = configuration.replace("{ hash_balance_factor: 0 }", "{}")
    with Envoy(configuration, len(servers)) as envoy:
        yield envoy.target, envoy.pid
