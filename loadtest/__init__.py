"""Load tests that answer one question: what would a team gain by sending columns?

What is sent:
  formats       the ways to write a request that are compared
  recorded      requests caught earlier (tfrecord reads the files)
  generated     requests made up from a model's signature
  sizes         how many candidates a request ranks
How:
  connection    request bytes in, response bytes and status code out, over gRPC
  closed_loop   K clients that each wait for their answer
  schedule      when each request is due: a Poisson process
  open_loop     sends on a schedule that waits for no answer
  comparison    formats in turn, interleaved in one run
  side_by_side  formats against one server: figures and score differences
What came of it:
  process       CPU seconds and memory of a server, by pid
  recording     every call's times, code and bytes
  figures       percentiles, rates and sizes of a recording
  tables        figures for a terminal
"""
