"""Locust users that send ranking requests: `locust -f "$(colcast loadtest --locust-file)"`."""
