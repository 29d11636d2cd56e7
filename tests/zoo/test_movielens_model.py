"""MovieLens: the data from its wheel, features from earlier ratings, and the trained model."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from colcast.zoo.examples import serialize
from colcast.zoo.movielens import train
from colcast.zoo.movielens.data import Movie, MovieLens, Rating, User, load, parse
from colcast.zoo.movielens.features import (
    Candidates,
    Impression,
    replay,
    split,
)
from colcast.zoo.movielens.train import WORK_DIR


@pytest.fixture
def tiny() -> MovieLens:
    """Five movies and two people, which can be checked by hand."""
    return MovieLens(
        users={1: User(1, 24, "M", "technician", "85711"), 2: User(2, 53, "F", "other", "94043")},
        movies={
            n: Movie(n, title, 1990 + n, ("Drama",))
            for n, title in enumerate(["Alien 3", "Big", "Cats Don't Dance", "Dave", "Ed"], start=1)
        },
        ratings=[
            Rating(user=1, movie=1, stars=5.0, time=100),
            Rating(user=2, movie=1, stars=1.0, time=200),
            Rating(user=1, movie=2, stars=4.0, time=300),
            Rating(user=1, movie=3, stars=2.0, time=300),
            Rating(user=1, movie=4, stars=4.0, time=400),
            Rating(user=1, movie=5, stars=3.0, time=500),
        ],
    )


def test_it_ranks_better_than_a_linear_model():
    _, report = train.ensure(train.WORK_DIR)
    assert report.auc > 0.785


def test_the_area_under_the_curve_counts_ties_as_half():
    scores = np.array([0.1, 0.4, 0.4, 0.8])
    liked = np.array([0.0, 0.0, 1.0, 1.0])
    assert train.area_under_curve(scores, liked) == pytest.approx((1 + 0.5 + 1 + 1) / 4)


def test_a_value_no_example_can_hold_names_its_feature():
    with pytest.raises(TypeError, match=r"'user_age': a tf\.Example holds no NoneType"):
        serialize({"user_age": None})


def mean(*stars: float) -> float:
    """The mean rating with the documented prior, five ratings of 3.5."""
    return (sum(stars) + 5 * 3.5) / (len(stars) + 5)


def impressions(data: MovieLens) -> dict[Rating, Impression]:
    return {seen.rating: seen for seen in replay(data, data.ratings)}


def with_stars(data: MovieLens, index: int, stars: float) -> MovieLens:
    ratings = list(data.ratings)
    ratings[index] = ratings[index]._replace(stars=stars)
    return replace(data, ratings=ratings)


def test_rows_hold_every_feature(tiny: MovieLens):
    seen = impressions(tiny)[tiny.ratings[4]]
    assert seen.user == {
        "user_id": 1,
        "user_age": 24,
        "user_gender": "M",
        "user_occupation": "technician",
        "user_zip": "85",
        "user_liked": [2, 1],  # newest first; not movie 3, which got only two stars
        "user_mean_rating": pytest.approx(mean(5, 4, 2)),
    }
    assert seen.item == {
        "movie_id": 4,
        "movie_title": ["dave"],
        "movie_year": 1994,
        "movie_genres": ["Drama"],
        "movie_mean_rating": 3.5,
        "movie_rating_count": 0,
    }


def test_a_movies_mean_counts_everybodys_earlier_ratings(tiny: MovieLens):
    item = impressions(tiny)[tiny.ratings[1]].item
    assert (item["movie_mean_rating"], item["movie_rating_count"]) == (pytest.approx(mean(5)), 1)


def test_ratings_of_the_same_second_do_not_use_each_other(tiny: MovieLens):
    seen = impressions(tiny)
    same_second = [seen[tiny.ratings[2]], seen[tiny.ratings[3]]]
    assert [one.user["user_liked"] for one in same_second] == [[1], [1]]


@pytest.mark.parametrize("changed", range(6))
def test_no_row_depends_on_its_own_label_or_a_later_one(tiny: MovieLens, changed: int):
    other = with_stars(tiny, changed, 1.0 if tiny.ratings[changed].liked else 5.0)
    before, after = replay(tiny, tiny.ratings), replay(other, other.ratings)
    time = tiny.ratings[changed].time
    for one, two in zip(before, after, strict=True):
        if one.rating.time <= time:
            assert (one.user, one.item) == (two.user, two.item)


def test_the_last_fifth_of_a_users_ratings_is_held_out(tiny: MovieLens):
    training, held_out = split(tiny)
    assert [seen.rating for seen in held_out] == [tiny.ratings[5]]
    assert [seen.rating for seen in training] == tiny.ratings[:5]


def test_no_training_row_depends_on_a_held_out_label(tiny: MovieLens):
    data = replace(tiny, ratings=[*tiny.ratings, Rating(user=2, movie=5, stars=5.0, time=600)])
    held_out = data.ratings[5]
    training, _ = split(data)
    changed, _ = split(with_stars(data, 5, 5.0))
    assert held_out not in [seen.rating for seen in training]
    assert training == changed


def test_candidates_are_the_movies_not_rated_yet(tiny: MovieLens):
    request = Candidates(tiny).of(2)
    assert [movie.id for movie in request.movies] == [2, 3, 4, 5]
    assert [item["movie_id"] for item in request.items] == [2, 3, 4, 5]
    assert request.user_row["user_mean_rating"] == pytest.approx(mean(1))


USERS = "user_id:token\tage:token\tgender:token\toccupation:token\tzip_code:token\n"
MOVIES = "item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq\n"
RATINGS = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"


def movie(line: str) -> Movie:
    return next(iter(parse(USERS, MOVIES + line, RATINGS).movies.values()))


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
def test_titles_are_in_natural_word_order(in_the_table: str, printed: str):
    assert movie(f"1\t{in_the_table}\t1995\tDrama\n").title == printed


def test_a_misplaced_year_is_taken_from_the_title():
    assert movie("1412\tTime of Giving (1995)\tV\tDrama\n").year == 1995
    assert movie("267\tunkonwn\tunkonwn\tunknown\n").year == 0


def test_the_published_data_set_is_whole():
    data = load(WORK_DIR)
    assert (len(data.users), len(data.movies), len(data.ratings)) == (943, 1682, 100_000)


def test_a_failed_download_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(RuntimeError, match=r"pip could not download .*recbole==1\.2\.1.*hand"):
        load(tmp_path)


def test_a_wheel_without_the_tables_is_named(tmp_path: Path):
    wheel = tmp_path / "wheel" / "other.whl"
    wheel.parent.mkdir()
    wheel.write_bytes(b"not a zip file")
    with pytest.raises(RuntimeError, match=r"other\.whl does not hold MovieLens-100K"):
        load(tmp_path)
