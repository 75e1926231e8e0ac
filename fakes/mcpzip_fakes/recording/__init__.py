"""Records real servers: stands between a client and a server and writes a cassette."""
