"""The colcast command: its help, its completion, its errors and its exit codes."""

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import click
import colcast.client
import pytest
from colcast.cli.main import SUBCOMMANDS, _install, main

COLCAST = Path(sys.executable).parent / "colcast"
HEAVY = {"tensorflow", "rich", "pandas", "locust"}
FOLDERS = ["--saved-model", "in", "--output", "out"]
OWN_OPTIONS = [name for name in SUBCOMMANDS if name != "serve"]  # serve passes its flags on


def declared(name: str) -> click.Command:
    return SUBCOMMANDS[name].load()


def options_of(name: str) -> list[click.Option]:
    return [it for it in declared(name).params if isinstance(it, click.Option) and not it.hidden]


def modules_after(*args: str) -> set[str]:
    """The packages that a fresh `colcast ...` process has imported when it ends."""
    code = f"""
import sys
from colcast.cli.main import main
code = main({list(args)})
print({{m.partition('.')[0] for m in sys.modules}}, file=sys.stderr)
sys.exit(code)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(re.findall(r"'(\w+)'", done.stderr))


def test_without_a_subcommand_it_lists_them_and_fails(capsys):
    assert main([]) == 2
    listed = capsys.readouterr().err
    assert all(f"  {name} " in listed for name in SUBCOMMANDS)


def test_help_is_no_failure(capsys):
    assert main(["--help"]) == 0
    assert capsys.readouterr().out.startswith("Usage: colcast [OPTIONS] SUBCOMMAND ...")


def test_the_version_is_the_distributions(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"colcast {colcast.client.__version__}\n"
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", colcast.client.__version__)


@pytest.mark.parametrize("args", [["--version"], ["--help"], ["completion", "bash"]])
def test_unused_parts_are_not_imported(args):
    assert modules_after(*args).isdisjoint({"numpy", "grpc", *HEAVY})


@pytest.mark.parametrize("name", ["export", "inspect", "loadtest", "compare", "bench"])
def test_help_imports_nothing_heavy(name):
    assert modules_after(name, "--help").isdisjoint(HEAVY)


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_help_names_and_explains_every_option(name):
    """Runs in a separate process, because `serve` replaces its process with the server."""
    shown = subprocess.run([COLCAST, name, "--help"], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith(f"Usage: colcast {name} ")
    for option in options_of(name):
        assert option.help, option.name
        assert all(spelling in shown.stdout for spelling in option.opts), option.name


@pytest.mark.parametrize("name", OWN_OPTIONS)
def test_help_shows_the_defaults(name):
    command = declared(name)
    context = click.Context(command, info_name=name, show_default=True)
    for option in options_of(name):
        if isinstance(option.default, int | float | str | list) and not option.is_flag:
            record = option.get_help_record(context)
            assert record is not None
            assert "[default: " in record[1], option.name


def test_the_documented_formats_exist(capsys):
    from colcast.loadtest.send.formats import FORMATS

    main(["loadtest", "--help"])
    output = " ".join(capsys.readouterr().out.split())
    *others, last = FORMATS
    assert f"Some of {', '.join(others)} and {last};" in output


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["exprot"], "colcast: no subcommand 'exprot'; did you mean 'export'?"),
        (["zzz"], "colcast: no subcommand 'zzz'; expected export, inspect, serve, items"),
        (["capacity", "--rate", "9"], "colcast: 'capacity' was removed: measure one replica with"),
        (["--verion"], "colcast: No such option '--verion'. Did you mean '--version'?"),
        (["rank", "--items", "a"], "colcast: 'rank' was removed: call RankingClient, which takes"),
        (["tune", "--modle", "a"], "colcast tune: No such option '--modle'. Did you mean"),
        (["rerank", "a"], "colcast: 'rerank' was removed: call TextClient.rank"),
        (["export", "--saved-model", "a"], "colcast export: Missing option '--output'"),
        (["export", "--max-relative-difference", "x"], "colcast export: Invalid value for '--max-"),
        (["export", "--tolerance", "0"], "colcast export: --tolerance was removed: --max-relative"),
        (["export", *FOLDERS, "--verbose"], "colcast export: --verbose was removed: colcast ins"),
        (["compare", "--min-top100-overlap", "1"], "colcast compare: --min-top100-overlap was"),
        (["export", *FOLDERS, "--warmup", "0"], "colcast export: Invalid value for '--warmup': 0"),
        (
            ["export", *FOLDERS, "--context-features", "position"],
            "colcast export: --context-features name inputs of the last stage: add --late",
        ),
        (["inspect"], "colcast inspect: Missing argument 'DIR'"),
        (["inspect", "a", "b"], "colcast inspect: Got unexpected extra argument (b)"),
        (
            ["loadtest", "--model", "m", "--rate", "1"],
            "colcast loadtest: Missing option '--target'",
        ),
        (["bench", "--round", "1"], "colcast bench: No such option '--round'."),
        (["completion", "tcsh"], "colcast completion: Invalid value for '{bash|zsh|fish}'"),
    ],
)
def test_a_wrong_command_line_ends_with_2_and_a_readable_line(capsys, args, message):
    assert main(args) == 2
    first, *others = capsys.readouterr().err.splitlines()
    assert first.startswith(message)
    assert others in ([f"Try '{first.partition(':')[0]} --help'."], [])


def test_options_may_be_spelt_with_underscores(capsys):
    assert main(["tune", "--max_minutes", "x"]) == 2
    assert "Invalid value for '--max-minutes': 'x' is not" in capsys.readouterr().err


@pytest.mark.parametrize(
    "given",
    [
        ["--user-features", "user_*", "age", "--late"],
        ["--user-features", "user_*", "--late", "--user-features", "age"],
        ["--user_features=user_*", "age", "--late"],
    ],
)
def test_an_option_with_several_values_takes_all_up_to_the_next(given):
    args = ["--saved-model", "in", *given, "--output", "out"]
    normalized = {"token_normalize_func": lambda name: name.replace("_", "-")}
    parsed = declared("export").make_context("export", args, **normalized).params
    assert parsed["user_features"] == ("user_*", "age")
    assert parsed["late"]
    assert parsed["output"] == Path("out")


def test_a_missing_dependency_is_named_with_its_install_command(capsys, monkeypatch, tmp_path):
    export = ["export", "--saved-model", str(tmp_path), "--output", str(tmp_path / "out")]
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    assert main(export) == 1
    assert "export needs tensorflow: pip install tensorflow-cpu, or" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (
            None,
            "pip install 'colcast[export] @ file:///FOLDER/WHEEL', the wheel that you installed",
        ),
        (
            {"url": "file:///wheels/colcast-1-py3-none-any.whl", "archive_info": {}},
            "pip install 'colcast[export] @ file:///wheels/colcast-1-py3-none-any.whl'",
        ),
        (
            {"url": "file:///src/my%20colcast", "dir_info": {"editable": True}},
            "pip install -e '/src/my colcast[export]'",
        ),
    ],
)
def test_an_extra_is_installed_from_the_origin_of_colcast(monkeypatch, origin, command):
    text = origin and json.dumps(origin)
    found = SimpleNamespace(read_text={"direct_url.json": text}.get)
    monkeypatch.setattr("colcast.cli.main.distribution", lambda name: found)
    assert _install("export") == command


def test_serve_says_where_it_looked_for_the_server(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLCAST_MODEL_SERVER", str(tmp_path / "nowhere"))
    assert main(["serve"]) == 1
    assert "nowhere" in capsys.readouterr().err


def test_serve_hands_flags_to_the_server():
    done = subprocess.run([COLCAST, "serve", "--prot=8500"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "colcast_model_server: unknown flag --prot" in done.stderr
    done = subprocess.run([COLCAST, "serve", "--help"], capture_output=True, text=True, check=True)
    assert "--model_base_path" in done.stdout


def test_an_interrupt_is_one_line(tmp_path: Path):
    """The interrupt comes while the client waits for a server that sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"127.0.0.1:{silent.getsockname()[1]}"
        command = [COLCAST, "loadtest", "--target", server, "--model", "m", "--rate", "1"]
        command += ["--output", str(tmp_path)]
        started = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            text=True,
            # a background shell makes its children ignore interrupts
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
        with started as waiting:
            silent.accept()
            # repeat, because gRPC swallows an interrupt raised within its own code
            while waiting.poll() is None:
                waiting.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    waiting.wait(timeout=5)
            output = waiting.stderr.read() if waiting.stderr else ""
    assert waiting.returncode == 128 + signal.SIGINT
    assert output.strip() == "colcast loadtest: interrupted"


BASH = r"""
set -eu
source "$1"
complete_line() {
  COMP_WORDS=($1) COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )) COMPREPLY=()
  _colcast_completion colcast
  echo "${COMPREPLY[*]}"
}
complete_line "colcast lo"
complete_line "colcast export --sav"
complete_line "colcast completion z"
complete_line "colcast serve --model_base"
"""


def test_bash_completes_subcommands_options_and_values(tmp_path):
    script = tmp_path / "colcast.bash"
    with script.open("w") as file:
        subprocess.run([COLCAST, "completion", "bash"], stdout=file, check=True)
    completed = subprocess.run(
        ["bash", "-c", BASH, "bash", script],
        env={"PATH": f"{COLCAST.parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stdout.splitlines() == [
        "loadtest",
        "--saved-model",
        "zsh",
        "--model_base_path",
    ]


@pytest.mark.parametrize(("shell", "mark"), [("zsh", "#compdef colcast"), ("fish", "complete")])
def test_other_shells_have_scripts_too(shell, mark, capsys):
    assert main(["completion", shell]) == 0
    assert mark in capsys.readouterr().out


NAME = "user_" + 40 * "long_" + "name"
PRINT = f"""
from colcast.cli.console import report_console
from rich.table import Table
table = Table("input", "value")
table.add_row("{NAME}", "1")
report_console().print(table)
report_console().print("found in {NAME} and {NAME}", highlight=False)
"""


def printed(into: Path, **environment: str) -> str:
    with into.open("w") as file:
        subprocess.run([sys.executable, "-c", PRINT], stdout=file, check=True, env=environment)
    return into.read_text()


def test_names_are_whole_in_a_file(tmp_path: Path):
    text = printed(tmp_path / "out")
    assert sum(line.count(NAME) for line in text.splitlines()) == 3
    assert max(map(len, text.splitlines())) < 600


def test_columns_sets_another_width(tmp_path: Path):
    text = printed(tmp_path / "out", COLUMNS="60")
    assert max(map(len, text.splitlines())) <= 60
