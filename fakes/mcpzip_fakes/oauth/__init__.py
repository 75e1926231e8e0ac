"""An authorization server, and protected MCP servers: OAuth 2.1 as in MCP, with faults.

The rules: its behaviour is data (`OAuth`), which can be changed while it runs; otherwise it follows the RFCs,
so that a client that passes has followed them too; it records every request. Its clock can be advanced, so
that no test waits for a token to expire. The guide is docs/fakes.md.
"""
