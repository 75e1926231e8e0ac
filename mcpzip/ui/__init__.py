"""The page that `mcpzip ui` serves to its user's browser on loopback, in a process of its own.

The rules:

1. The daemon and `mcpzip serve` import nothing of this, and no MCP client can reach it: it asks the daemon
   over the private socket, as `mcpzip ps` does.
2. Every text of a server, a client or a file is hostile: it passes through `rendering`, where characters that
   act, hide or reorder become visible escapes and HTML is escaped.
3. A page is one module in `pages` and one template; it is complete without a script.
"""
