"""Load shapes for Locust, one per file, to be passed to Locust with the locustfile."""
