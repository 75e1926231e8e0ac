"""MCP clients for tests: several at once, each with its own identity, against one stdio command or URL.

    many       starts and ends them: `ManyClients`, behind the fixture ``many_clients``
    client     one client: its requests, its answers to questions, all that it received
    identity   who a client says it is, and what it answers
    pending    the outcome of a request, for tests with and without asyncio
    stdio      the transport stdio: a process for each client
    http       the transport Streamable HTTP: a session for each client

The rule: they speak the legacy era, send what the test says, and judge nothing. They run in threads, so that
neither a test's event loop nor another client can delay them.
"""
