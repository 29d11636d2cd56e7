"""Columns -> one request -> a ranking.

`_targets` (which signature, who repeats the user), `_distinct` (rows sent once), `_item_keys`,
`_affinity` (whose request it is) -> `_request`; `_many_users` is one for several users,
`_metadata` asks for the schema. `_outputs` is what comes back.
"""
