"""Prints the configuration of an Envoy proxy in front of colcast servers.

    python deploy/envoy/render.py --server ranker.default.svc:8500:8501 >envoy.yaml
    python deploy/envoy/render.py --server 10.0.0.1:8500:8501 --server 10.0.0.2:8500:8501

A single --server is a DNS name that resolves to all servers. With several --server options, each
names one server; gRPC and REST requests of a user then go to the same server. docs/scale.md
describes the configuration.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any, NamedTuple


class Server(NamedTuple):
    """The value of a --server option."""

    host: str
    grpc_port: int
    rest_port: int

    def endpoint(self, port: int, *, alone: bool) -> dict[str, Any]:
        """Returns the server's address on `port` as Envoy's LbEndpoint."""
        address = {"socket_address": {"address": self.host, "port_value": port}}
        found: dict[str, Any] = {"endpoint": {"address": address}}
        if not alone:  # both protocols use the same key
            key = f"{self.host}:{self.grpc_port}"
            found["metadata"] = {"filter_metadata": {"envoy.lb": {"hash_key": key}}}
        return found


def filters(rate: int, header: str) -> list[dict[str, Any]]:
    """Envoy's HttpFilters: the router and, unless `rate` is 0, a limit on each caller's rate."""
    kind = "type.googleapis.com/envoy.extensions.filters.http"
    router = {
        "name": "envoy.filters.http.router",
        "typed_config": {"@type": f"{kind}.router.v3.Router"},
    }
    if not rate:
        return [router]
    caller = {"header_name": header, "descriptor_key": "caller"}
    bucket = {"max_tokens": rate, "tokens_per_fill": rate, "fill_interval": "1s"}
    everything = {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}
    limit = {
        "@type": f"{kind}.local_ratelimit.v3.LocalRateLimit",
        "stat_prefix": "callers",
        "filter_enabled": everything,
        "filter_enforced": everything,
        "rate_limited_as_resource_exhausted": True,
        "rate_limits": [{"actions": [{"request_headers": caller}]}],
        # Without a value in this entry, Envoy makes a bucket for each caller's name.
        "descriptors": [{"entries": [{"key": "caller"}], "token_bucket": bucket}],
        "max_dynamic_descriptors": 1000,
    }
    return [{"name": "envoy.filters.http.local_ratelimit", "typed_config": limit}, router]


def render(servers: Sequence[Server], tls: dict[str, Any] | None = None, **values: Any) -> str:
    """Fills in the template.

    Args:
        servers: at least one server.
        tls: Envoy's DownstreamTlsContext; None for plain text.
        values: the template's other variables.
    """
    alone = len(servers) == 1
    texts = {
        "grpc_endpoints": [one.endpoint(one.grpc_port, alone=alone) for one in servers],
        "rest_endpoints": [one.endpoint(one.rest_port, alone=alone) for one in servers],
        "tls": tls and {"name": "envoy.transport_sockets.tls", "typed_config": tls},
        **values,
    }
    template = Template((Path(__file__).parent / "envoy.yaml").read_text())
    return template.substitute({name: json.dumps(value) for name, value in texts.items()})


def _server(text: str) -> Server:
    host, grpc_port, rest_port = ([""] * 3 + text.rsplit(":", 2))[-3:]
    if not host or not grpc_port.isdigit() or not rest_port.isdigit():
        message = f"expected HOST:GRPC_PORT:REST_PORT, got {text!r}"
        raise argparse.ArgumentTypeError(message)
    return Server(host.strip("[]"), int(grpc_port), int(rest_port))


def _tls(options: argparse.Namespace) -> dict[str, Any] | None:
    if not options.tls_certificate:
        return None
    certificate = {
        "certificate_chain": {"filename": options.tls_certificate},
        "private_key": {"filename": options.tls_key},
    }
    common: dict[str, Any] = {
        "alpn_protocols": ["h2", "http/1.1"],
        "tls_certificates": [certificate],
    }
    if options.client_authority:
        trusted = {"trusted_ca": {"filename": options.client_authority}}
        common["validation_context"] = trusted
    kind = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext"
    return {
        "@type": kind,
        "common_tls_context": common,
        "require_client_certificate": bool(options.client_authority),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the configuration that the command line describes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--server", action="append", type=_server, required=True, metavar="HOST:GRPC:REST")
    add("--host", default="0.0.0.0", help="the address to listen on (%(default)s)")
    add("--grpc-port", type=int, default=8500)
    add("--rest-port", type=int, default=8501)
    add("--admin-port", type=int, default=9901, help="listens on 127.0.0.1 (%(default)s)")
    add(
        "--balance-factor",
        type=int,
        default=150,
        help="a server's largest load, in %% of the mean (%(default)s)",
    )
    add(
        "--caller-header",
        default="x-colcast-caller",
        help="the header that names the caller (%(default)s)",
    )
    add("--caller-rate", type=int, default=0, help="requests per second per caller; 0: no limit")
    add("--max-connections", type=int, default=1000, help="of all clients together (%(default)s)")
    add("--max-requests", type=int, default=2000, help="requests in flight (%(default)s)")
    add(
        "--max-retried-bytes",
        type=int,
        default=4 << 20,
        help="larger requests are not retried (%(default)s)",
    )
    add("--max-heap-bytes", type=int, default=1 << 30)
    add("--tls-certificate", metavar="FILE")
    add("--tls-key", metavar="FILE")
    add(
        "--client-authority", metavar="FILE", help="authority of clients' certificates (mutual TLS)"
    )
    options = parser.parse_args(arguments)
    if bool(options.tls_certificate) != bool(options.tls_key) or (
        options.client_authority and not options.tls_certificate
    ):
        parser.error("TLS needs --tls-certificate and --tls-key")
    names = [
        *("host", "grpc_port", "rest_port", "admin_port", "balance_factor"),
        *("max_connections", "max_requests", "max_retried_bytes", "max_heap_bytes"),
    ]
    values: dict[str, Any] = {name: getattr(options, name) for name in names}
    values["http_filters"] = filters(options.caller_rate, options.caller_header)
    sys.stdout.write(render(options.server, _tls(options), **values))


if __name__ == "__main__":
    main()
