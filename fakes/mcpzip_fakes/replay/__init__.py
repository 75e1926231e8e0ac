"""Plays cassettes: the recorded sessions of a server, to new clients."""
