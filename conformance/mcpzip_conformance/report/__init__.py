"""What a run found, as a value, and its renderings, one a file.

The rule: a rendering shows the value and decides nothing.
"""
