"""Reads a SavedModel and adds a signature that takes columns.

`_folder` reads it, `_variables` fills what loading leaves empty, `_flatten` inlines function calls,
`_parse_cut` with `_parse_op` and `_lists` finds the parse ops and their features (`_plain_inputs`
those of a signature that takes tensors), `_columns` builds what replaces them, `_copy_nodes` and
`_signature` add the new signature, `_object_graph` shows it to Python, `_serving_default` makes it
the default. `_op_libraries` loads ops that are not TensorFlow's.
"""
