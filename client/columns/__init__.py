"""Converts any form of data to checked columns and to bytes, and answers back to arrays.

`_inputs`, `_inputs_examples` (any form -> table) -> `_columns`, `_lists`, `_values` (checked) ->
`_batch` (one user, N candidates) -> `_encode`. `_decode` reads answers, `_schema` says what the
server wants, `_examples` writes tf.Examples.
"""
