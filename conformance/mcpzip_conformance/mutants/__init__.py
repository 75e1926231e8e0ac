"""A small correct proxy and its faults: the tests of the runner itself.

    relay         the proxy: ``python -m mcpzip_conformance.mutants.relay CONFIG [PORT]``
    faults        the ways, each with the check that must notice
    wrong         the proxy made wrong: ``python -m mcpzip_conformance.mutants.wrong FAULT CONFIG [PORT]``
    hunt          a wrong proxy before the checks
    names.toml    the shortest subject there can be; `conformance/subjects/relay.toml` has all modes

The rule: without a fault the relay passes every applicable check; with a fault it fails the check of the
fault's row, and of the other checks of level must only those that the row names.
"""
