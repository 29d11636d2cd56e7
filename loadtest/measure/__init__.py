"""Load generators, meters of servers, recordings, checks of answers, searches."""
