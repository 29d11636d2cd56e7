"""The exception type of this tool."""


class ForkError(Exception):
    """An error whose message says in one or two lines what a person can fix."""
