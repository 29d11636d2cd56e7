"""The error about a table, a model or a source as a whole."""


class ItemTableError(Exception):
    """Not what it should be; the message names the file.

    A value that does not fit is a `colcast.client.InputError`, with its feature and row.
    """
