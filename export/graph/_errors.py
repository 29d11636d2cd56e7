"""The exceptions of the exporter."""


class ExportError(Exception):
    """A model that cannot be converted as asked. The message says what, where, and what to do."""


class TooLongError(ExportError):
    """A trial run of the model did not finish in time."""
