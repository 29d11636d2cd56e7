"""`colcast capacity`: how many replicas carry a load, from what was measured of one.

measured      the result of a load test or of tuning -> stretches of load, or why it says nothing
service       stretches -> how long a request takes and how much of a worker, fitted to the load
users         whose each request is: by Zipf's law, or as recorded
state_cache   which users a replica knows, by the server's own way of evicting
routing       which replica gets a request: in turn, by user, by user with a bound
simulation    a queue per replica, and users' states in each
plan          the fewest replicas that keep the target
report        a table, what was measured and what was not, what was assumed; the same as JSON
cli           the command line
"""
