"""The commands: one file each. They render; what is true is decided below."""
