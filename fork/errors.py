"""The one error of this tool."""


class ForkError(Exception):
    """What is wrong, in one or two lines a person can act on."""
