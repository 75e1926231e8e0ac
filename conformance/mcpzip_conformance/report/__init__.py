"""The output formats of a report, one a file.

The rule: a format only shows the report and decides nothing.
"""
