"""Signing in to servers: OAuth 2.1, the store of what was granted, and headers that a program makes.

The rules: nothing interactive happens but in ``mcpzip auth login``; what was granted for one server is never
shown to another; a secret is written to the store and to the server it is for, and nowhere else.
"""
