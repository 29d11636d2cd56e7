"""Converts any form of data to checked columns and to bytes, and answers back to arrays.

`_inputs` and `_inputs_examples` turn data into a table; `_columns`, `_lists` and `_values` check
and convert it; `_batch` combines one user and N candidates; `_encode` writes bytes. `_decode` reads
answers, `_schema` describes the model's signatures, `_examples` writes tf.Examples.

Data that does not fit the signature is an InputError that names the feature and, if there is one,
the row at fault.
"""
