"""The commands, one file for each. They only render what the lower layers decide."""
