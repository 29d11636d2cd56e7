"""The number of users rises linearly to a hundred, stays there, and falls again.

locust -f loadtest/locust/locustfile.py,loadtest/locust/shapes/ramp.py ...
"""

from locust import LoadTestShape


class RampShape(LoadTestShape):  # type: ignore[misc]
    """Rises to `most_users` in `up_seconds`, stays for `stay_seconds`, falls in `up_seconds`."""

    most_users = 100
    up_seconds = 60
    stay_seconds = 120

    def tick(self) -> tuple[int, float] | None:
        """The number of users now, and how many to start per second; None ends the test."""
        seconds = self.get_run_time()
        end = 2 * self.up_seconds + self.stay_seconds
        if seconds >= end:
            return None
        share = min(seconds, self.up_seconds, end - seconds) / self.up_seconds
        return max(1, round(self.most_users * share)), max(1.0, self.most_users / self.up_seconds)
