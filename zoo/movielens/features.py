"""The features of users and movies as plain rows, computed only from earlier ratings.

A user row and an item row are dicts from feature name to a value or, for multi-valued features, a
list. Their counts and means use only ratings that are earlier than the one they describe.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from colcast.zoo.movielens.data import Movie, MovieLens, Rating, User

Value = int | float | str | list[int] | list[str]
Row = dict[str, Value]

HISTORY_LENGTH = 20
_PRIOR_RATINGS = 5  # every mean starts with this many ratings of _PRIOR_STARS
_PRIOR_STARS = 3.5
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


class Impression(NamedTuple):
    """One rating, with the features as they were just before it."""

    rating: Rating
    user: Row
    item: Row


@dataclass
class _Mean:
    count: int = 0
    total: float = 0.0

    def add(self, stars: float) -> None:
        self.count += 1
        self.total += stars

    @property
    def value(self) -> float:
        """The mean rating, pulled toward 3.5 stars while there are few ratings."""
        return (self.total + _PRIOR_RATINGS * _PRIOR_STARS) / (self.count + _PRIOR_RATINGS)


def _history() -> deque[int]:
    return deque(maxlen=HISTORY_LENGTH)


@dataclass
class FeatureStore:
    """The statistics of the ratings added so far, and the rows made from them."""

    _user_means: defaultdict[int, _Mean] = field(default_factory=lambda: defaultdict(_Mean))
    _movie_means: defaultdict[int, _Mean] = field(default_factory=lambda: defaultdict(_Mean))
    _liked: defaultdict[int, deque[int]] = field(default_factory=lambda: defaultdict(_history))

    def add(self, rating: Rating) -> None:
        """Adds a rating; ratings must come in order of time."""
        self._user_means[rating.user].add(rating.stars)
        self._movie_means[rating.movie].add(rating.stars)
        if rating.liked:
            self._liked[rating.user].appendleft(rating.movie)

    def user_row(self, user: User) -> Row:
        """The user's features; `user_liked` holds up to 20 movie ids, newest first."""
        return {
            "user_id": user.id,
            "user_age": user.age,
            "user_gender": user.gender,
            "user_occupation": user.occupation,
            "user_zip": user.zip_code[:2],
            "user_liked": list(self._liked[user.id]),
            "user_mean_rating": self._user_means[user.id].value,
        }

    def item_row(self, movie: Movie) -> Row:
        mean = self._movie_means[movie.id]
        return {
            "movie_id": movie.id,
            "movie_title": title_words(movie.title),
            "movie_year": movie.year,
            "movie_genres": list(movie.genres),
            "movie_mean_rating": mean.value,
            "movie_rating_count": mean.count,
        }


def title_words(title: str) -> list[str]:
    """The words of a title, lower case, without punctuation."""
    return _WORD.findall(title.lower())


def replay(data: MovieLens, ratings: Iterable[Rating]) -> Iterator[Impression]:
    """Replays `ratings` in order of time and describes each with features of earlier ratings.

    Ratings given in the same second (three in four share theirs) do not affect each other.
    """
    store = FeatureStore()
    for _, same_second in groupby(ratings, key=lambda rating: rating.time):
        batch = list(same_second)
        for rating in batch:
            user, movie = data.users[rating.user], data.movies[rating.movie]
            yield Impression(rating, store.user_row(user), store.item_row(movie))
        for rating in batch:
            store.add(rating)


def split(data: MovieLens) -> tuple[list[Impression], list[Impression]]:
    """Impressions for training, and the held-out last fifth of every user's ratings.

    The features of a training row come from training ratings only, so no held-out label reaches the
    model. Those of a held-out row come from all earlier ratings, as in a live system.
    """
    held_out = _last_fifth_of_each_user(data.ratings)
    training = replay(data, (rating for rating in data.ratings if rating not in held_out))
    everything = replay(data, data.ratings)
    return list(training), [seen for seen in everything if seen.rating in held_out]


def _last_fifth_of_each_user(ratings: Iterable[Rating]) -> set[Rating]:
    by_user: defaultdict[int, list[Rating]] = defaultdict(list)
    for rating in ratings:
        by_user[rating.user].append(rating)
    return {rating for mine in by_user.values() for rating in mine[len(mine) - len(mine) // 5 :]}


@dataclass(frozen=True)
class RankingRequest:
    """One user and all movies that could be shown to them: row i of `items` is `movies[i]`."""

    user: User
    user_row: Row
    movies: list[Movie]
    items: list[Row]


class Candidates:
    """Ranking requests as of the end of the data set."""

    def __init__(self, data: MovieLens) -> None:
        self._data = data
        self._store = FeatureStore()
        self._seen: defaultdict[int, set[int]] = defaultdict(set)
        for rating in data.ratings:
            self._store.add(rating)
            self._seen[rating.user].add(rating.movie)

    @property
    def users(self) -> list[int]:
        """The ids of all users, in order."""
        return sorted(self._data.users)

    def all_items(self) -> list[Row]:
        """The row of every movie."""
        return [self._store.item_row(movie) for movie in self._data.movies.values()]

    def of(self, user_id: int) -> RankingRequest:
        """Every movie the user has not rated, in order of id.

        Raises:
          KeyError: there is no such user.
        """
        user, seen = self._data.users[user_id], self._seen[user_id]
        movies = [movie for movie in self._data.movies.values() if movie.id not in seen]
        items = [self._store.item_row(movie) for movie in movies]
        return RankingRequest(user, self._store.user_row(user), movies, items)
