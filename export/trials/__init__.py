"""Rows to try a model with, and the proof that two of its signatures agree on them.

`_generate` (with `_domains` and `_vocabulary`) makes rows up, `_traffic`, `_logged_columns` and
`_tensor_traffic` read recorded ones, `_model_rows` finds those that the model accepts.
`_both_signatures` runs source and columnar signature, `_parity` compares them; `_scored_alike`
compares candidates together and apart. `_feature_domains` says which domain a feature belongs to.
"""
