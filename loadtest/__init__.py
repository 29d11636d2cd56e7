"""Load tests that measure how much a team would gain by sending columns.

send      requests in every format, from every source of traffic, and their schedules
measure   load generators, meters of servers, recordings, checks of answers, searches
report    results as tables, charts, a page, verdicts
compare   `colcast compare`: how far the answers of two servers or models differ
tune      `colcast tune`: the settings with the highest rate within a latency target
locust    Locust users whose formats take turns, with a comparison at the end

`load_test` runs `colcast loadtest`; `cli` has its options, `options` the ones that several commands
share. measure imports send, report imports measure, and the other packages import these three.

Options that do not fit each other, the model or a file's content raise ValueError; a model or a
server that cannot do what is asked, RuntimeError, LookupError, OSError or a
`colcast.client.ColcastError`. `options.report_failures` turns them into messages.
"""
