"""`colcast SUBCOMMAND ...`: each subcommand lives in its own part, imported only when used."""

import importlib
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import NamedTuple


class _Subcommand(NamedTuple):
    module: str  # has main(argv) -> exit code
    extra: str | None  # the extra of the distribution that brings its dependencies
    summary: str


_SUBCOMMANDS = {
    "export": _Subcommand("colcast.export.cli", "export", "add columnar signatures to a model"),
    "inspect": _Subcommand(
        "colcast.export.inspect_cli", "export", "show what an export did, or would do"
    ),
    "serve": _Subcommand("colcast.server.cli", None, "start the native server"),
    "rank": _Subcommand("colcast.client.cli", None, "rank items from a file for one user"),
    "loadtest": _Subcommand("colcast.loadtest.cli", "loadtest", "compare formats under load"),
    "bench": _Subcommand("colcast.loadtest.bench", "loadtest", "measure the zoo's models"),
}


def _usage() -> str:
    lines = [f"  {name:<10}{sub.summary}" for name, sub in _SUBCOMMANDS.items()]
    usage = "usage: colcast SUBCOMMAND ... | --version"
    return "\n".join([usage, "", *lines, "", "colcast SUBCOMMAND --help"])


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one subcommand and returns its exit code.

    2 where the command line is wrong, 130 where the subcommand was interrupted.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    if args[:1] == ["--version"]:
        print(f"colcast {version('colcast')}")
        return 0
    if not args or args[0] in ("-h", "--help"):
        print(_usage())
        return 0 if args else 2
    name = args.pop(0)
    if name not in _SUBCOMMANDS:
        print(f"colcast: unknown subcommand {name!r}\n\n{_usage()}", file=sys.stderr)
        return 2
    sub = _SUBCOMMANDS[name]
    try:
        code: int = importlib.import_module(sub.module).main(args)
    except ModuleNotFoundError as error:
        if sub.extra is None or (error.name or "").startswith("colcast"):
            raise
        print(
            f"colcast {name} needs {error.name}: pip install 'colcast[{sub.extra}]'",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print(f"\ncolcast {name}: interrupted", file=sys.stderr)
        return 130
    return code


if __name__ == "__main__":
    sys.exit(main())
