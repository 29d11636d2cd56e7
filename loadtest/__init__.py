"""Load tests that answer one question: what would a team gain by sending columns?

process       CPU seconds and memory of a server, by pid
connection    request bytes in, response bytes and status code out, over gRPC
recording     what a run measured: latencies, errors by code, bytes
closed_loop   K clients that each wait for their answer
sizes         how many candidates a request ranks
schedule      when each request is due: a Poisson process
open_loop     sends on a schedule that waits for no answer
comparison    formats side by side, interleaved in one run
"""
