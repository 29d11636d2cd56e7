"""Load shapes for Locust, one a file, given to it beside the locustfile."""
