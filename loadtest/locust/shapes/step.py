"""The number of users rises by ten every half minute, for five minutes.

locust -f loadtest/locust/locustfile.py,loadtest/locust/shapes/step.py ...
"""

from locust import LoadTestShape


class StepShape(LoadTestShape):  # type: ignore[misc]
    """Adds `step_users` every `step_seconds`, until `total_seconds` have passed."""

    step_users = 10
    step_seconds = 30
    total_seconds = 300

    def tick(self) -> tuple[int, float] | None:
        """The number of users now, and how many to start per second; None ends the test."""
        seconds = self.get_run_time()
        if seconds >= self.total_seconds:
            return None
        return self.step_users * (1 + int(seconds / self.step_seconds)), self.step_users
