"""Options of the commands that call a server."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
from colcast.client._settings import ChannelOptions, Tls

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])


def tls_options(option: Callable[..., Any] = click.option) -> Callable[[_Decorated], _Decorated]:
    """The TLS options of a command that calls a server; `channel_options` reads them.

    Args:
        option: declares an option, with the arguments of `click.option`.
    """
    return together(
        option("--tls", is_flag=True, help="Use TLS and trust the system's authorities."),
        option("--tls-root-certificates", metavar="PEM", help="The authorities to trust."),
        option("--tls-private-key", metavar="PEM", help="The client's key, for mutual TLS."),
        option(
            "--tls-certificate-chain",
            metavar="PEM",
            help="The client's certificate, for mutual TLS.",
        ),
        option(
            "--tls-server-name",
            metavar="NAME",
            help="The name in the server's certificate, if it differs from the address.",
        ),
    )


def together(*options: Callable[[Any], Any]) -> Callable[[_Decorated], _Decorated]:
    """A decorator that declares the options in this order."""

    def decorate(function: _Decorated) -> _Decorated:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def channel_options(given: Mapping[str, Any]) -> ChannelOptions:
    """The channel options given by `tls_options`, with TLS if any of them is set."""
    names = ("root_certificates", "private_key", "certificate_chain", "server_name")
    settings = {name: given[f"tls_{name}"] for name in names}
    return ChannelOptions(tls=Tls(**settings) if given["tls"] or any(settings.values()) else None)
