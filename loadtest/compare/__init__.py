"""`colcast compare`: how far the answers of two servers or models differ."""
