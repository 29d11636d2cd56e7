"""Measures the cost of requests for each variant in a table.

`table` lists the variants; `requests` makes their requests; `serving` starts their servers;
`encoding` measures encoding, without a server; `turns` measures variants in turn and prints lines;
`run` draws charts.
"""
