"""Rows for trying a model, and the proof that two of its signatures agree on them.

`_generate` (with `_domains` and `_vocabulary`) generates rows; `_traffic` and `_tensor_traffic`
read recorded ones; `_model_rows` finds those that the model accepts. `_both_signatures` runs source
and columnar signature, and `_parity` compares them, and candidates scored together with the same
ones scored separately. `_feature_domains` assigns features to domains.
"""
