"""Programs that a model writes: read, checked, and run in a sandbox where tools are functions."""
