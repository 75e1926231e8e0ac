"""The checks of `mcpzip doctor`: what is wrong with the config, the servers and the machine; what fixes it.

The rule: a check never raises and changes nothing. What it reads may be as broken as it likes.
"""
