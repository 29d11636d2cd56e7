"""`colcast tune`: climbs to the server settings with the highest rate within a latency target."""
