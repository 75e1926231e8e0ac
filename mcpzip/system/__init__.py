"""What differs between operating systems: pipes on an event loop, process groups, files; and waiting.

The rule: nothing outside this folder asks which system it runs on.
"""
