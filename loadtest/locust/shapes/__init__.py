"""Load shapes for Locust, one per file, passed to Locust together with the locustfile."""
