"""A small proxy that passes every applicable check of the runner.

    end         one end of a JSON-RPC conversation: requests, answers, progress, cancellation
    naming      what the client calls a tool, a prompt, a resource, and what its server calls it
    session     a client: what it asks goes to the server it is for
    opening     how the client has opened us
    upstream    a server: started, opened as the client opened us, started again after it has ended
    guard       what ends a server when we can't
    listing     the lists of all servers as one
    bridging    questions between a client of one era and a server of the other
    search      the tools behind ``find``, ``show`` and ``run``
    relay       stdio, and the life of the process
    http        Streamable HTTP: sessions and streams
    exchange    one exchange of it
    sockets     the HTTP server

    python -m mcpzip_conformance.mutants.relay CONFIG [PORT]

The rule: each client gets a connection of its own to every server, opened in the client's era and with the
client's capabilities. So nearly everything passes as the text it came in, and only names are changed:
those of tools and prompts (``server__tool``), URIs (``relay://server/uri``), ids and progress tokens.
"""
