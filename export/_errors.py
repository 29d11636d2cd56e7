"""The one exception of the exporter."""


class ExportError(Exception):
    """A model that cannot be converted as asked: the message says what, where and what to do."""
