"""What requests cost: one table of variants, one way to measure them, one table printed.

`table` lists the variants; `requests` writes what they send; `serving` starts servers and
`encoding` needs none; `turns` measures variants in turn and prints; `run` draws CPU as bars.
"""
