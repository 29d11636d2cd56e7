"""`colcast rank` from files to table, against the real server."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa
import pytest
from colcast.cli.main import main
from colcast.client import ModelSchema, RankingClient
from colcast.client._files import read_items, read_user
from colcast.server import ServerProcess
from pyarrow import parquet
from tensorflow_serving.apis import predict_pb2

from ..models import build
from ..server.tls import Authority
from .conftest import ITEMS, USER, scores

FULL = [{"title": f"Film {i}", "year": 1990.0, **item} for i, item in enumerate(ITEMS)]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("movies")
    build("movies", path / "1")
    with ServerProcess("movies", path) as server:
        yield server.target


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with the user, and with the items in every format."""
    (tmp_path / "user.json").write_text(json.dumps(USER))
    (tmp_path / "items.json").write_text(json.dumps(FULL))
    (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, FULL)) + "\n")
    parquet.write_table(pa.Table.from_pylist(FULL), tmp_path / "items.parquet")
    with (tmp_path / "items.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FULL[0])
        writer.writeheader()
        for item in FULL:
            lists = {key: "|".join(map(str, item[key])) for key in ("genres", "vector")}
            writer.writerow({**item, **lists})
    return tmp_path


def rank(target: str, files: Path, items: str, *flags: str) -> list[str]:
    """The arguments of `colcast rank`."""
    where = ["--server", target, "--model", "movies", "--user", str(files / "user.json")]
    return ["rank", *where, "--items", str(files / items), "--score_output", "scores", *flags]


@pytest.mark.parametrize("ending", ["json", "jsonl", "csv", "parquet"])
def test_the_best_items_of_every_file_format(
    target: str, files: Path, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with RankingClient(target, "movies", score_output="scores", timeout_seconds=60) as client:
        expected = client.rank(USER, ITEMS).top(2)
    assert main(rank(target, files, f"items.{ending}", "--top", "2", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["candidates"], found["version"]) == (3, 1)
    assert [(place["row"], place["score"]) for place in found["top"]] == expected
    assert found["top"][0]["item"]["title"] == f"Film {expected[0].row}"


def test_nan_in_a_file_is_sent_if_asked_for(
    target: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "items.json").write_text(json.dumps([{**FULL[0], "year": float("nan")}, *FULL[1:]]))
    assert main(rank(target, files, "items.json")) == 1
    assert "feature 'year', row 0: expected a finite float32, got nan" in capsys.readouterr().err
    assert main(rank(target, files, "items.json", "--nan", "send")) == 0


def test_the_table(target: str, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(rank(target, files, "items.jsonl", "--show", "title,genres")) == 0
    first, head, *rows = capsys.readouterr().out.splitlines()
    assert first == "3 candidates, movies version 1"
    assert head.split() == ["rank", "row", "score", "title", "genres"]
    assert [row.split()[0] for row in rows] == ["1", "2", "3"]
    assert any(row.endswith("War, Noir") for row in rows)


def test_a_missing_column_to_show(
    target: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(rank(target, files, "items.jsonl", "--show", "titel")) == 2
    assert "--show: no column 'titel'; the items have title, " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.jsonl", None, "No such file or directory"),
        ("bad.jsonl", '{"movie": 7}\n{"movie":', "bad.jsonl:2: not JSON"),
        ("bad.json", "{}", "expected a JSON list of rows, got dict"),
        ("bad.csv", "movie,year\n7,1\nx,2\n", "feature 'movie', row 1: expected int64, got 'x'"),
        ("short.csv", "movie,year\n7\n", "short.csv:2: 1 cells, but the header has 2"),
        ("long.csv", 'movie,year\n"\n7",8,9\n', "long.csv:3: 3 cells, but the header has 2"),
        ("twice.csv", "movie,year,movie\n7,1,8\n", "the header names 'movie' more than once"),
        ("wide.csv", f"movie\n{'7' * 200_000}\n", "wide.csv:2: not CSV: field larger than field"),
        ("semicolon.csv", "id;when;what\n7;1;2\n", "given but unused: 'id;when;what'"),
        ("bad.parquet", "PAR1", "cannot read"),
        ("empty.jsonl", "", "empty.jsonl: no items, expected one per row"),
        ("header.csv", "movie,year\n", "header.csv: no items, expected one per row"),
    ],
)
def test_one_line_says_what_is_wrong_with_a_file(
    target: str,
    files: Path,
    name: str,
    content: str | None,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if content is not None:
        (files / name).write_text(content)
    assert main(rank(target, files, name)) == 1
    error = capsys.readouterr().err
    assert error.startswith("colcast rank: ")
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("ending", ["json", "jsonl", "csv"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "mark"])
def test_text_keeps_every_line_end_and_a_file_may_begin_with_a_mark(
    files: Path, ending: str, mark: str, schema: ModelSchema
) -> None:
    title = "a\nb\r\nc\u2028d\x85e\x0cf"
    path = files / f"items.{ending}"
    if ending == "csv":
        path.write_bytes(f'{mark}movie,title\r\n7,"{title}"\r\n9,x\r\n'.encode())
    else:
        items = [{"movie": 7, "title": title}, {"movie": 9, "title": "x"}]
        texts = [json.dumps(item, ensure_ascii=False) for item in items]
        text = "\n".join(texts) if ending == "jsonl" else f"[{','.join(texts)}]"
        path.write_bytes(f"{mark}{text}".encode())
    found = read_items(path, schema.signatures["columnar"].features)
    assert found == [{"movie": 7, "title": title}, {"movie": 9, "title": "x"}]


def test_a_user_file_may_begin_with_a_mark(files: Path) -> None:
    (files / "user.json").write_text(f"\ufeff{json.dumps(USER)}", encoding="utf-8")
    assert read_user(files / "user.json") == USER


def test_a_cell_of_the_table_stays_in_its_line(
    target: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [{**FULL[0], "title": "a\nb\0c"}]
    (files / "items.json").write_text(json.dumps(items))
    assert main(rank(target, files, "items.json", "--show", "title")) == 0
    _, _, row = capsys.readouterr().out.splitlines()
    assert row.endswith(r"a\nb\x00c")


def two_outputs(request: bytes, _: grpc.ServicerContext) -> bytes:
    """Renames the output, and adds a second one, so that neither has a usual name."""
    answer = predict_pb2.PredictResponse.FromString(scores(request))
    for name in ("click", "stay"):
        answer.outputs[name].CopyFrom(answer.outputs["scores"])
    del answer.outputs["scores"]
    return bytes(answer.SerializeToString())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "which of click, stay is the score? Name it with score_output (--score-output"),
        (["--score-output", "nix"], "no output 'nix'; the outputs are click float32[3], stay"),
        (
            ["--score-output", "nix", "--json"],
            "no output 'nix'; the outputs are click float32[3], stay",
        ),
    ],
)
def test_a_model_with_several_outputs_is_told_which_to_choose_from(
    serves: Any,
    schema: ModelSchema,
    files: Path,
    options: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = serves(schema, two_outputs)
    command = ["rank", "--server", server.address, "--model", "movies"]
    command += ["--user", str(files / "user.json"), "--items", str(files / "items.json")]
    assert main([*command, *options]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    assert line.startswith(f"colcast rank: {message}")
    assert main([*command, "--score-output", "stay"]) == 0


def standard_input(text: str) -> io.TextIOWrapper:
    """A standard input that yields `text`, as a pipe would."""
    return io.TextIOWrapper(io.BytesIO(text.encode()))


@pytest.mark.parametrize("as_lines", [True, False])
def test_items_from_standard_input(
    target: str,
    files: Path,
    as_lines: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "\n".join(map(json.dumps, FULL)) if as_lines else json.dumps(FULL)
    monkeypatch.setattr("sys.stdin", standard_input(text))
    command = rank(target, files, "-", "--json")
    command[command.index("--items") + 1] = "-"
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert main(rank(target, files, "items.json", "--json")) == 0
    assert found == json.loads(capsys.readouterr().out)


def test_the_user_from_standard_input(
    target: str, files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", standard_input("{"))
    command = rank(target, files, "items.json")
    command[command.index("--user") + 1] = "-"
    assert main(command) == 1
    assert "standard input: not JSON" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", standard_input(json.dumps(USER)))
    assert main(command) == 0


def test_a_server_with_tls(
    serves: Any, schema: ModelSchema, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    authority = Authority(files, "authority")
    credentials = grpc.ssl_server_credentials([authority.issue("server").pem])
    server = serves(schema, credentials=credentials)
    tls = ["--tls_root_certificates", str(authority.root)]
    command = rank(server.address, files, "items.json", *tls, "--tls_server_name", "localhost")
    assert main(command) == 0
    assert capsys.readouterr().out.startswith("3 candidates, movies version 3")
    assert (
        main([*rank(server.address, files, "items.json", "--timeout_seconds", "0.5"), "--tls"]) == 1
    )


def test_no_server(files: Path, capsys: Any) -> None:
    assert main(rank("127.0.0.1:1", files, "items.jsonl", "--timeout_seconds", "0.2")) == 1
    assert capsys.readouterr().err.startswith("colcast rank: UNAVAILABLE from 127.0.0.1:1")
