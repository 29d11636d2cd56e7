"""`colcast serve`: replaces this process with the native server."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem
from colcast.server._executable import ServerNotBuiltError, find_executable

_HELP = ("--help", "-h", "-help")


class _Serve(click.Command):
    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes the server's own flags, as listed by its --help."""
        try:
            listed = subprocess.run(
                [find_executable(), "--help"], capture_output=True, text=True, check=False
            )
        except (ServerNotBuiltError, OSError):
            return []
        flags = re.findall(r"^  (--\w+)=", listed.stdout, re.MULTILINE)
        return [CompletionItem(flag) for flag in flags if flag.startswith(incomplete)]


@click.command(
    cls=_Serve,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="colcast serve --model_name=movies --model_base_path=/models/movies --port=8500",
)
@click.argument("flags", nargs=-1, type=click.UNPROCESSED, metavar="--FLAG=VALUE...")
@click.pass_context
def command(context: click.Context, flags: Sequence[str]) -> None:
    """Replaces this process with the native server, colcast_model_server.

    It takes the flags of tensorflow_model_server and more; --help lists all of them.
    """
    asked = any(flag in _HELP for flag in flags)
    if asked:
        click.echo(context.get_help() + "\n")
        sys.stdout.flush()
    try:
        executable = find_executable()
    except ServerNotBuiltError as error:
        if asked:
            click.echo(f"Cannot list the server's flags: {error}")
            return
        raise click.ClickException(str(error)) from error
    if asked:
        subprocess.run([executable, "--help"], check=False)  # --help exits with 1
    else:
        os.execv(executable, [str(executable), *flags])
