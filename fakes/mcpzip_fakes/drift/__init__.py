"""Compares a real server with the one that a cassette recorded: a contract test.

drift        a difference, its severity, and the report of all
differences  where two JSON values differ, by value or by shape
schemas      where two JSON schemas differ, and for whom that breaks something
catalog      where two handshakes or two lists differ
answers      where two answers to a request differ
expected     what the cassette says of a session: questions, notifications, lists
connection   one connection to the real server
checking     plays a cassette's requests against the real server
settings     what is checked, and how
"""
