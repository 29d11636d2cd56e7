"""Sends and measures: loops, meters of servers, recordings, checks of answers, searches."""
