"""The exceptions of the exporter."""


class ExportError(Exception):
    """A model that cannot be converted as asked: the message says what, where and what to do."""


class TooLongError(ExportError):
    """A trial of the model did not end in the time it had."""
