"""What happens then: loops that send, meters of servers, recordings, checks, searches."""
