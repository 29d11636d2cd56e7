"""Exporter: a SavedModel that parses tf.Example, or takes tensors, becomes one that takes columns.

The path of a model, file by file: `_folder` reads it, `_variables` fills what loading leaves empty,
`_flatten` inlines function calls, `_parse_cut` with `_parse_op` and `_lists` finds the parse ops
and their features (`_plain_inputs` those of a signature that takes tensors), `_columns` builds what
stands for them, `_copy_nodes` and `_signature` add the new signature. `_generate` (with `_domains`,
`_vocabulary`), `_traffic` and `_tensor_traffic` give rows, `_parity` proves with them,
`_loaded_model` runs what needs the variables (`_op_libraries` loads ops that are not TensorFlow's),
`cut/` adds late expansion and the stages, `_object_graph` shows it all to Python,
`_report` tells, `_verdict` in five lines with what `_cost` measured, `_page` with all there is.
`_convert` is the way as a whole; for `colcast inspect`, `_plan` goes it without proof and
`_recorded` reads what was told. `estimator` is for Estimators at export time.
"""

from typing import TYPE_CHECKING, Any

from colcast.export._errors import ExportError
from colcast.export._features import Column, Feature, Kind, Side

if TYPE_CHECKING:
    from colcast.export._convert import export_saved_model
    from colcast.export._op_libraries import load_op_libraries
    from colcast.export._report import ExportReport, SignatureReport

__all__ = [
    "Column",
    "ExportError",
    "ExportReport",
    "Feature",
    "Kind",
    "Side",
    "SignatureReport",
    "export_saved_model",
    "load_op_libraries",
]

_NEED_TENSORFLOW = {
    "export_saved_model": "_convert",
    "load_op_libraries": "_op_libraries",
    "ExportReport": "_report",
    "SignatureReport": "_report",
}


def __getattr__(name: str) -> Any:
    """Imports TensorFlow, which takes seconds, only with what needs it."""
    if name not in _NEED_TENSORFLOW:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_NEED_TENSORFLOW[name]}"), name)
