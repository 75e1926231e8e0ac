"""The Streamable HTTP server end (spec: `basic/transports/streamable-http`): `site` is uvicorn, its beginning
and its end, `gate` is who may come in, `downstream` whose a message is, `legacy` and `modern` are the eras,
`outbox` and `reply` the way out, `track` what was said there and may be said again.
"""
