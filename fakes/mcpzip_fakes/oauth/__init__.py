"""An authorization server, and protected MCP servers: OAuth 2.1 as MCP has it, and what can go wrong.

The rules: what it does is data (`OAuth`), and may be told anew while it runs; whatever the data don't say it
does right, so that a client that passes has followed the RFCs; it keeps every request it got. Its clock can
be put forward, so that nobody waits for a token to expire. The guide is docs/fakes.md.
"""
