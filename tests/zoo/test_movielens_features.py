"""Features describe a rating by what came before it, and by nothing else."""

from dataclasses import replace

import pytest
from colcast.zoo.movielens.data import MovieLens, Rating
from colcast.zoo.movielens.features import (
    HISTORY_LENGTH,
    Candidates,
    FeatureStore,
    Impression,
    replay,
    split,
    title_words,
)


def mean(*stars: float) -> float:
    """The documented prior: five ratings of 3.5."""
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
        "user_liked": [2, 1],  # the newest first; movie 3 got two stars only
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


def test_ratings_of_the_same_second_see_nothing_of_each_other(tiny: MovieLens):
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


def test_history_is_bounded():
    store = FeatureStore()
    for n in range(HISTORY_LENGTH + 5):
        store.add(Rating(user=1, movie=n, stars=5.0, time=n))
    assert list(store._liked[1]) == list(range(HISTORY_LENGTH + 4, 4, -1))


def test_candidates_are_the_movies_not_rated_yet(tiny: MovieLens):
    request = Candidates(tiny).of(2)
    assert [movie.id for movie in request.movies] == [2, 3, 4, 5]
    assert [item["movie_id"] for item in request.items] == [2, 3, 4, 5]
    assert request.user_row["user_mean_rating"] == pytest.approx(mean(1))


def test_title_words_are_lower_case_without_punctuation():
    assert title_words("Cats Don't Dance: 2 (Or 3?)") == ["cats", "don't", "dance", "2", "or", "3"]
