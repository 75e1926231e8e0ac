"""HTTP as a client: connections, bodies and redirects, within the limits of `model.limits`.

The rule: what comes over HTTP from a server is counted before anything is made of it, here and nowhere else.
"""
