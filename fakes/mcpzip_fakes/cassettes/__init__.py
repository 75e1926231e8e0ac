"""Shows and changes cassettes, the recorded sessions of MCP servers.

messages   the messages of a cassette, decoded
overview   a cassette, or one of its exchanges, as text and as JSON
merging    several cassettes as one
editing    the reply of an exchange, changed in an editor
"""
