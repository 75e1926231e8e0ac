"""The daemon: one process that serves all agents of a user with one config.

`protocol` is what `mcpzip serve` (`server.shim`) and it say to each other; `main` starts it; `daemon` takes
connections; `session` serves one `mcpzip serve`; `proxies` keeps a proxy for each environment that matters.
"""
