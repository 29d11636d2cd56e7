"""The error about a table, a model or a source as a whole."""


class ItemTableError(Exception):
    """A table, model or source is malformed; the message names the file.

    A value that does not fit is a `colcast.client.InputError`, with its feature and row.
    """
