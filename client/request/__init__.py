"""Turns columns into a request, and its reply into a ranking.

`_request` builds a request with `_targets` (which signature, who repeats the user), `_distinct`
(rows sent once), `_item_keys` and `_affinity` (which server). `_many_users` builds one for several
users, `_metadata` asks for the schema, `_outputs` holds the reply. Data that does not fit the
signature is an InputError, a target for which the model has no signature a SchemaError.
"""
