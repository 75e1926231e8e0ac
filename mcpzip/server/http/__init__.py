"""The server end of Streamable HTTP (spec: `basic/transports/streamable-http`), along the way of a request:
`connection` parses it, `middleware` checks it, `server` hands it to `legacy` or `modern`, `task_tracker` runs
it, `send_queue` and `response` send what comes of it, `event_store` keeps that for a client that resumes.
"""
