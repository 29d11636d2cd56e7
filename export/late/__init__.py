"""Late expansion: computes the user's part of a model once per request and not once per candidate.

`add_late_signature` adds, beside a columnar signature, one whose user inputs have one row and whose
graph repeats tensors only where user and items meet. The way there, file by file: `_sides` (which
ops may run at one row), `_frontier` with `_findings` (which tensors can be repeated, found by
running), `_late_graph` with `_rules`, `_split` and `_products` (the new nodes), `_proof` and
`_late_report`; `_ops` is all that is known of ops by their type.
"""

from colcast.export.late._add_late import add_late_signature
from colcast.export.late._late_report import FrontierTensor, LateReport
from colcast.export.late._proof import PROOF_ROWS
from colcast.export.late._requests import DrawRows

__all__ = ["PROOF_ROWS", "DrawRows", "FrontierTensor", "LateReport", "add_late_signature"]
