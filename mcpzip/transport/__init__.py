"""Connections to upstreams: a pool, one owner task a connection, one file a transport."""
