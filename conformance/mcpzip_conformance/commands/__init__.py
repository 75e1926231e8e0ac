"""The commands of ``mcpzip-conformance``, one a file.

The rule: a command reads words and shows values. What it plays, pins, installs or renders is done elsewhere,
where a library can reach it, too.
"""
