"""A small proxy that passes every applicable check of the runner, but holds no poisoned server back.

    end         one end of a JSON-RPC conversation: requests, answers, progress, cancellation
    naming      maps the client's names of tools, prompts and resources to the servers' names
    session     a client, whose requests go to their servers
    opening     the client's handshake
    upstream    a server: started, opened in the client's era, restarted after it has ended
    guard       ends the servers if the relay is killed
    listing     the lists of all servers as one
    bridging    questions between a client of one era and a server of the other
    search      the relay's own tools ``find``, ``show`` and ``run``
    keeping     large results, and its own tool ``rest``
    programs    its own tools ``program`` and ``approve``
    relay       stdio, and start and end of the process
    http        Streamable HTTP: sessions and streams
    exchange    one HTTP exchange: head, body, status
    sockets     the HTTP server

    python -m mcpzip_conformance.mutants.relay CONFIG [PORT]

The rule: each client gets a connection of its own to every server, opened in the client's era and with the
client's capabilities. So nearly everything passes as the received text, and only names are changed:
those of tools and prompts (``server__tool``), URIs (``relay://server/uri``), ids and progress tokens.
"""
