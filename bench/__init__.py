"""Measures what requests cost: one table of variants, one way to measure them, one table as result.

`table` lists the variants; `requests` makes their requests; `serving` starts servers, which
`encoding` does not need; `turns` measures variants in turn and prints lines; `run` draws charts.
"""
