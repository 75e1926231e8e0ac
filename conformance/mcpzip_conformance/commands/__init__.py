"""The commands of ``mcpzip-conformance``, one a file.

The rule: a command parses options and prints results. The work is done in other modules, which libraries can
use too.
"""
