"""Fakes: real MCP servers on real transports that do exactly what a scenario says, faults included.

    fakes.scenario   what a server is, as data (Python or TOML)
    fakes.launch     start one: ``start(scenario, transport="stdio"|"http"|"sse")``
    fakes.record     what it saw
    mcpzip-fake      the same from a shell;  pytest: the fixture ``fake_mcp``

Importing this package imports nothing else: a fake must start fast, and the pytest plugin is loaded by every
run.
"""
