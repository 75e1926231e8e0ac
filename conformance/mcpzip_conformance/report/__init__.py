"""The output formats of a report, one in each file.

The rule: a format only renders the report. Which results count is decided in `mcpzip_conformance.verdict`.
"""
