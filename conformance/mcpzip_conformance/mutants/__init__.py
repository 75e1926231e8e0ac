"""A small correct proxy and its faults: the tests of the runner itself.

    relay         the proxy: ``python -m mcpzip_conformance.mutants.relay CONFIG [PORT]``
    faults        the faults, each with the check that must detect it
    wrong         the proxy with a fault: ``python -m mcpzip_conformance.mutants.wrong FAULT CONFIG [PORT]``
    hunt          plays checks against a faulty proxy
    names.toml    the shortest possible subject; `subjects/relay.toml` has all modes

The rule: without a fault the relay passes every applicable check; with a fault it fails the check of the
fault's row, and of the other checks of level must only those that the row names.
"""
