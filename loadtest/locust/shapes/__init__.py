"""Load shapes for Locust, one per file, given to it beside the locustfile."""
