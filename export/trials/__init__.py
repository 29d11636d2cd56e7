"""Rows for trial runs of a model, and the proof that two of its signatures agree on them.

`_generate` (with `_domains` and `_vocabulary`) generates rows; `_traffic` reads
recorded ones; `_model_rows` finds rows that the model accepts, `_requests` draws requests of
one user from them. `_both_signatures` runs source
and columnar signature. `_parity` compares the two, and also candidates scored together with
candidates scored separately. `_feature_domains` assigns features to domains.
"""
