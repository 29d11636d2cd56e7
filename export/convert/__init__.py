"""Reads a SavedModel and adds a signature that takes columns.

`_folder` reads the file; `_variables` fills variables that loading leaves empty; `_flatten` inlines
function calls; `_parse_cut`, `_parse_op` and `_lists` find the parse ops and their features
(`_plain_inputs` for a signature that takes tensors); `_copy_nodes` and `_signature` add the new
signature; `_object_graph` makes it visible to Python and, if asked, makes it the default.
"""
