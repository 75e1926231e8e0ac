"""A small proxy that is right, and the ways in which it can be made wrong: the tests of the runner itself.

    faults        the ways, each with the check that must notice
    relay         the proxy: ``python -m conformance.mutants.relay CONFIG names|meta [FAULT]``
    upstream      one server behind it
    names.toml, meta.toml    the subjects: tools under their own names, and behind meta-tools

The rule: without a fault it passes every check that applies; with one it fails the check named beside it.
"""
