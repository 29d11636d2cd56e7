"""The exporter: adds signatures that take columns to a SavedModel.

`convert/` reads a model and adds its columnar signature; `trials/` provides trial rows and proves
that scores agree; `rows/` is the independence rule; `cut/` adds late expansion and the stages;
`report/` describes the result; `graph/` has shared tools. `_export` runs an export with the options
in `_options`; `_loaded_model` runs the steps that need the variables. `_plan` converts without
proof, for `colcast inspect`. `estimator` writes columnar signatures while an Estimator is exported;
`warmup` writes warm-up requests.
"""

from typing import TYPE_CHECKING, Any

from colcast.export.convert._features import Column, Feature, Kind, Side
from colcast.export.graph._errors import ExportError

if TYPE_CHECKING:
    from colcast.export._export import export_saved_model
    from colcast.export._options import ExportOptions
    from colcast.export.graph._op_defs import load_op_libraries
    from colcast.export.report._report import ExportReport, SignatureReport

__all__ = [
    "Column",
    "ExportError",
    "ExportOptions",
    "ExportReport",
    "Feature",
    "Kind",
    "Side",
    "SignatureReport",
    "export_saved_model",
    "load_op_libraries",
]

_NEED_TENSORFLOW = {
    "export_saved_model": "_export",
    "ExportOptions": "_options",
    "load_op_libraries": "graph._op_defs",
    "ExportReport": "report._report",
    "SignatureReport": "report._report",
}


def __getattr__(name: str) -> Any:
    """Imports modules that need TensorFlow only on first use, because that takes seconds."""
    if name not in _NEED_TENSORFLOW:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_NEED_TENSORFLOW[name]}"), name)
