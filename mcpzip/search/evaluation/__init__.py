"""How well search finds the tools of a catalog: requests, measures, and what would help."""
