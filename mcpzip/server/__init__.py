"""The downstream side: the early handshake, the session of one client, stdio, HTTP."""
