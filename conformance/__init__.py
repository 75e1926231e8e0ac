"""A conformance runner for MCP proxies: the same scene straight to a fake server and through the proxy.

    conformance.subject       a proxy under test, as data: how to configure, start and reach it
    conformance.checks        the requirements, one small async function each
    conformance.runner        plays checks against subjects; gives a report value
    conformance.report        renderings of that value
    mcpzip-conformance        the same from a shell; also ``python -m conformance``

The rule of the package: it knows proxies only by their subject file. Nothing here imports one.
"""
