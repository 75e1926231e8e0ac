"""Code that depends on the operating system (pipes, processes, files, the network), and back-off.

No other folder checks which operating system it runs on.
"""
