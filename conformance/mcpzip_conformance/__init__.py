"""A conformance runner for MCP proxies: the same scene straight to a fake server and through the proxy.

    mcpzip_conformance.subject       a proxy under test, as data: how to configure, start and reach it
    mcpzip_conformance.checks        the requirements, one small async function each
    mcpzip_conformance.runner        plays checks against subjects; gives a report value
    mcpzip_conformance.report        renderings of that value
    mcpzip-conformance        the same from a shell; also ``python -m mcpzip_conformance``

The rule of the package: it knows proxies only by their subject file. Nothing here imports one.
"""
