"""`colcast tune`: finds the server settings with the highest rate within a latency target."""
