"""What an export found: the verdict, the page, the record.

`_report` has it as data, as colcast.json (`_json`) and as a table, `_verdict` in five lines with what `_cost`
measured, `_page` as HTML (`_model_drawing` draws the domains). `_recorded` reads colcast.json back.
"""
