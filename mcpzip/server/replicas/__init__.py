"""Several processes of `mcpzip serve --http` with the same config, behind a balancer and without a store:
`replica` seals what goes through clients, `forwarding` sends a request to the replica that it belongs to,
`listener` takes such requests.
"""
