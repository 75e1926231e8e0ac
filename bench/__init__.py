"""Benchmarks of mcpzip. Nothing imports this package, and nothing in it asserts.

The rules: every figure is a ratio of two subjects that were measured alternately in one run, because
milliseconds of two runs or two machines can't be compared. The budget (docs/performance.md) is printed beside
the figure; the reader judges.
"""
