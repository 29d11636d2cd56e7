"""`colcast completion`: prints the script that makes a shell complete subcommands and options."""

import click
from click.shell_completion import get_completion_class

_INSTALL = {
    "bash": "source <(colcast completion bash)   # in ~/.bashrc",
    "zsh": "source <(colcast completion zsh)    # in ~/.zshrc, after compinit",
    "fish": "colcast completion fish > ~/.config/fish/completions/colcast.fish",
}


@click.command(epilog="\b\n" + "\n".join(_INSTALL.values()))
@click.argument("shell", type=click.Choice(list(_INSTALL)))
def command(shell: str) -> None:
    """Prints the script that makes SHELL complete subcommands, options and file names."""
    from colcast.cli.main import cli

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "colcast", "_COLCAST_COMPLETE").source())
