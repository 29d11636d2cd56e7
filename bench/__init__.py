"""Measures the cost of requests, from a table of variants to a table of results.

`table` lists the variants; `requests` makes their requests; `serving` starts servers; `encoding`
needs none; `turns` measures variants in turn and prints lines; `run` draws charts.
"""
