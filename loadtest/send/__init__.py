"""Sends requests: connections, request formats, sources of traffic, sizes and schedules."""
