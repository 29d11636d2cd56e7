"""Load tests that answer one question: what would a team gain by sending columns?

`cli` and `load_test` are `colcast loadtest`, `bench_cli` and `bench` are `colcast bench`,
`compare_cli` and `compare` are `colcast compare`, `demo` is `make demo`; they share one measuring
engine, `run`. Locust is given `locustfile` and, if wanted, one of shapes/: `locust_users` send,
`locust_turns` says when, `locust_tally` counts, `locust_comparison` and `locust_page` show what
came of it. What they are made of:

What is sent:
  traffic       the sources of requests: generated, recorded (tfrecord), the zoo's
  formats       the ways to write a request that are compared; series: for which servers
  sizes         how many candidates a request ranks
  sides         A and B of colcast compare: servers, versions, folders that are served for it
How:
  connection    request bytes in, response bytes and status code out, over gRPC
  closed_loop   K clients that each wait for their answer
  schedule      when each request is due: a Poisson process
  open_loop     sends on a schedule that waits for no answer
  run           the engine: series in turn (turns), at a rate, with clients, or searching
  search        the highest rate within a latency target, confirmed afterwards
  budget, outlook, progress    how long it may take, how long it will, how far it has come
  side_by_side  several numbers of candidates with one client and with several
  variants      the loop and the table of every bench; server_variants: servers that differ in flags
What came of it:
  process, metrics, meters    CPU seconds and memory of a server, by pid or by its metrics page
  recording     every call's times, code and bytes; figures: what they come to
  correctness   answers under load against answers in peace
  agreement, ranking    how far the answers of two servers are apart
  result, headline, gate, report    all of it in plain values: JSON, tables for a terminal, a page
  compare_report, compare_page      the same for colcast compare; output: both to a folder
"""
