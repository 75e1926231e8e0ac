"""The HTTP client: connections, bodies, event streams and redirects, within `model.limits`.

All input that servers send over HTTP is counted here, before it is parsed.
"""
