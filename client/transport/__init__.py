"""Calls servers: addresses, the choice of a server, deadlines, retries, TLS, tracing spans."""
