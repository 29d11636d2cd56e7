"""Locust users that send ranking requests: `locust -f loadtest/locust/locustfile.py`."""
