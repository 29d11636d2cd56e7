"""Compresses a day's load into ten minutes: few users at night, most in the evening.

locust -f loadtest/locust/locustfile.py,loadtest/locust/shapes/diurnal.py ...
"""

from math import cos, pi

from locust import LoadTestShape


class DiurnalShape(LoadTestShape):  # type: ignore[misc]
    """A cosine between `night_users` and `evening_users` that starts at night."""

    night_users = 5
    evening_users = 60
    day_seconds = 600
    days = 1

    def tick(self) -> tuple[int, float] | None:
        """The number of users now, and how many to start per second; None ends the test."""
        seconds = self.get_run_time()
        if seconds >= self.day_seconds * self.days:
            return None
        wave = (1 - cos(2 * pi * seconds / self.day_seconds)) / 2
        users = self.night_users + (self.evening_users - self.night_users) * wave
        return round(users), max(1.0, self.evening_users / 20)
