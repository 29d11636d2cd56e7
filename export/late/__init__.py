"""Late expansion: computes the user's part of a model once per request and not once per candidate.

`add_late_signature` adds, beside a columnar signature, one whose user inputs have one row and whose
graph repeats tensors only where user and items meet. The way there, file by file: `_frontier`
(which tensors can be repeated, found by running), `_late_graph` with `_rules`, `_split` and
`_products` (the new nodes), `_proof` and `_late_report`; `graph/` has what the stages use, too.
"""

from colcast.export.graph._comparison import PROOF_ROWS
from colcast.export.graph._requests import DrawRows
from colcast.export.late._add_late import add_late_signature
from colcast.export.late._late_report import FrontierTensor, LateReport
from colcast.export.late._user_share import user_share

__all__ = [
    "PROOF_ROWS",
    "DrawRows",
    "FrontierTensor",
    "LateReport",
    "add_late_signature",
    "user_share",
]
