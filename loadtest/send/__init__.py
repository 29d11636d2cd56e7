"""What is sent: connections, request formats, sources of traffic, sizes and times."""
