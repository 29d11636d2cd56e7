"""`colcast compare`: measures how far the answers of two servers or models differ."""
