"""Connections to upstreams: a pool, one owner task for each connection, one file for each transport."""
