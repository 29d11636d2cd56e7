"""Measures the cost of requests for each variant in a table.

`table` lists the variants; `requests` makes their requests; `run` starts their servers;
`measure` measures variants in turn, with the load test's runner, and prints lines;
`encoding` measures encoding, without a server.
"""
