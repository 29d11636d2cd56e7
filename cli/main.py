"""`colcast SUBCOMMAND ...`: each subcommand is in its own package, imported only when used."""

import importlib
import json
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlparse
from urllib.request import url2pathname

import click
from click.exceptions import NoArgsIsHelpError
from click.shell_completion import CompletionItem, get_completion_class


class Subcommand(NamedTuple):
    """The location of a subcommand.

    Attributes:
        place: a module with a click.Command called `command`, or MODULE:NAME.
        extra: the extra of the distribution that installs its dependencies; None if it needs none.
        summary: its description in `colcast --help`.
    """

    place: str
    extra: str | None
    summary: str

    def load(self) -> click.Command:
        module, _, name = self.place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name or "command")
        return command


SUBCOMMANDS = {
    "export": Subcommand("colcast.export.cli", "export", "add columnar signatures to a model"),
    "inspect": Subcommand(
        "colcast.export.inspect_cli", "export", "show what an export did, or would do"
    ),
    "serve": Subcommand("colcast.server.cli", None, "start the native server"),
    "items": Subcommand("colcast.items.cli", "items", "build and inspect tables of items by key"),
    "tables": Subcommand(
        "colcast.items.cli:tables", "items", "change rows of embedding tables while they are served"
    ),
    "loadtest": Subcommand("colcast.loadtest.cli", "loadtest", "compare formats under load"),
    "compare": Subcommand(
        "colcast.loadtest.compare.cli", "loadtest", "compare the answers of two servers or models"
    ),
    "bench": Subcommand("colcast.bench.cli", "loadtest", "measure the zoo's models"),
    "tune": Subcommand("colcast.loadtest.tune.cli", "loadtest", "find the server's best settings"),
    "completion": Subcommand("colcast.cli.main:completion", None, "print a script for your shell"),
}

REMOVED = {
    "capacity": "measure one replica with `colcast loadtest --find-max` and divide the rate by it"
    " (docs/scale.md, How many replicas)",
    "encode": "call TextClient.encode with a file's lines (docs/text.md)",
    "rerank": "call TextClient.rank with a file's lines (docs/text.md)",
    "rank": "call RankingClient, which takes the rows of a file (docs/client.md, Rows of a file)",
}


class _Subcommands(click.Group):
    """A group that imports a subcommand only when it runs, not when it is listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return None
        try:
            return SUBCOMMANDS[cmd_name].load()
        except ModuleNotFoundError:
            if ctx.resilient_parsing:  # so shell completion offers nothing
                return None
            raise

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        name = args[0]
        if name in SUBCOMMANDS or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        if name in REMOVED:
            raise click.UsageError(f"{name!r} was removed: {REMOVED[name]}", ctx)
        close = get_close_matches(name, SUBCOMMANDS, n=1)
        meant = f"did you mean {close[0]!r}?" if close else f"expected {', '.join(SUBCOMMANDS)}"
        raise click.UsageError(f"no subcommand {name!r}; {meant}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Subcommands"):
            formatter.write_dl([(name, sub.summary) for name, sub in SUBCOMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = [
            CompletionItem(name, help=sub.summary)
            for name, sub in SUBCOMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(
    cls=_Subcommands,
    subcommand_metavar="SUBCOMMAND ...",
    context_settings={
        "help_option_names": ["-h", "--help"],
        "show_default": True,
        "max_content_width": 100,
        "token_normalize_func": lambda name: name.replace("_", "-"),
    },
    epilog="colcast SUBCOMMAND --help explains every option. The documentation, docs/*.md, is in "
    f"{Path(__file__).resolve().parents[1] / 'docs'}.",
)
@click.version_option(package_name="colcast", message="%(prog)s %(version)s")
def cli() -> None:
    """Serves TensorFlow ranking models: send the user once, rank every candidate."""


_INSTALL = {
    "bash": "source <(colcast completion bash)   # in ~/.bashrc",
    "zsh": "source <(colcast completion zsh)    # in ~/.zshrc, after compinit",
    "fish": "colcast completion fish > ~/.config/fish/completions/colcast.fish",
}


@click.command(epilog="\b\n" + "\n".join(_INSTALL.values()))
@click.argument("shell", type=click.Choice(list(_INSTALL)))
def completion(shell: str) -> None:
    """Prints the script that makes SHELL complete subcommands, options and file names."""
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "colcast", "_COLCAST_COMPLETE").source())


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one subcommand and returns its exit code.

    The code is 1 if it failed, 2 for a wrong command line, and 130 if it was interrupted.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    name = args[0] if args else ""
    try:
        code: int | None = cli.main(args, prog_name="colcast", standalone_mode=False, obj=args)
    except NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.UsageError as error:
        called = error.ctx.command_path if error.ctx else "colcast"
        print(f"{called}: {error.format_message()}\nTry '{called} --help'.", file=sys.stderr)
        return error.exit_code
    except click.ClickException as error:
        print(f"colcast {name}: {error.format_message()}", file=sys.stderr)
        return error.exit_code
    except click.Abort:
        print(f"colcast {name}: interrupted", file=sys.stderr)
        return 130
    except ModuleNotFoundError as error:
        extra = SUBCOMMANDS[name].extra if name in SUBCOMMANDS else None
        if extra is None or (error.name or "").startswith("colcast"):
            raise
        command = _TENSORFLOW if error.name in ("tensorflow", "ml_dtypes") else _install(extra)
        print(f"colcast {name} needs {error.name}: {command}", file=sys.stderr)
        return 1
    return code or 0


# No extra installs TensorFlow: requiring tensorflow-cpu would overwrite an installed tensorflow.
_TENSORFLOW = "pip install tensorflow-cpu, or tensorflow, of the release that your models use"


def _install(extra: str) -> str:
    """The command that adds an extra to this distribution, for the way it was installed."""
    origin = distribution("colcast").read_text("direct_url.json")
    if origin is None:  # from an index or --find-links; another project may own the name on PyPI
        return (
            f"pip install 'colcast[{extra}] @ file:///FOLDER/WHEEL', the wheel that you installed"
        )
    found = json.loads(origin)
    if found.get("dir_info", {}).get("editable"):
        return f"pip install -e '{url2pathname(urlparse(found['url']).path)}[{extra}]'"
    return f"pip install 'colcast[{extra}] @ {found['url']}'"


if __name__ == "__main__":
    sys.exit(main())
