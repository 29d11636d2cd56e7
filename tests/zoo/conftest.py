"""A MovieLens data set of five movies and two people, which can be checked by hand."""

import pytest
from colcast.zoo.movielens.data import Movie, MovieLens, Rating, User


@pytest.fixture
def tiny() -> MovieLens:
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
