"""Measures mcpzip: nothing imports this package, nothing in it asserts.

The rules: every figure is a ratio of two things that took turns in one run, because milliseconds of two runs
or two machines can't be compared; the budget (docs/performance.md) stands beside the figure, and judging is
the reader's.
"""
