"""What an export found: the verdict, the page, the record.

`_report` has it as data and as a table, `_json` as colcast.json has it, `_verdict` in a few lines
with what `_cost` measured, `_page` as HTML (`_model_drawing` draws the domains). `_recorded` reads
colcast.json back.
"""
