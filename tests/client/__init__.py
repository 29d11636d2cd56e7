"""The client: tests, and the benchmark `python -m tests.client.bench_encoding`."""
