"""Servers and calls: addresses, which server gets a call, deadlines, retries, TLS, spans."""
