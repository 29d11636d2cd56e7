"""Describes an export's findings: verdict, page and record.

`_report` holds the findings as data and prints tables; `_json` writes them for colcast.json, and
`_recorded` reads them back; `_verdict` sums them up in five lines, with the costs that `_cost`
measured; `_page` renders them as HTML.
"""
