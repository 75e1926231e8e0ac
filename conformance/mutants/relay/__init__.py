"""A proxy that shows how little one needs: it passes every check of the runner that applies.

    end         one end of a JSON-RPC conversation: requests, answers, progress, cancellation
    naming      what the client calls a tool, a prompt, a resource, and what its server calls it
    session     a client: what it asks goes to the server it is for
    upstream    a server: started, opened as the client opened us, started again after it has ended
    listing     the lists of all servers as one
    search      the tools behind ``find``, ``show`` and ``run``
    relay       stdio, and the life of the process
    http        Streamable HTTP
    sockets     the HTTP server

    python -m conformance.mutants.relay CONFIG [PORT]

The rule: each client gets a connection of its own to every server, opened in the client's era and with the
client's capabilities. So nearly everything passes as the text it came in, and only names are changed:
those of tools and prompts (``server__tool``), URIs (``relay://server/uri``), ids and progress tokens.

What it leaves out: between a client of one era and a server of the other, questions to the client are not
translated; such a server hears that the client can answer none.
"""
