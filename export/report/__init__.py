"""Describes what an export found: verdict, page and record.

`_report` holds it as data and prints it as a table; `_json` is its form in colcast.json; `_verdict`
sums it up in a few lines, with what `_cost` measured; `_page` is the HTML form.
`_recorded` reads colcast.json back.
"""
