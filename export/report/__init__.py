"""Describes an export's findings: verdict, page and record.

`_report` holds the findings as data and writes colcast.json, with `_json`'s form of values;
`_recorded` reads and prints that file; `_verdict` sums them up in five lines, with the costs that
`_cost` measured; `_page` renders them as HTML.
"""
