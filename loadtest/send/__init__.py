"""Sending: connections, request formats, sources of traffic, sizes and times."""
