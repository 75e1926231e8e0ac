"""Who makes a request over HTTP: mcpzip as an OAuth 2.1 resource server (spec: basic/authorization), and API
keys. `authenticator` has a token checked by `jwt_verifier`, `introspection` or `api_keys`; `claims` makes a
principal of what they found; `resource_metadata` tells clients where to get a token.

Nothing of it is imported unless the config has an ``http`` with issuers or API keys.
"""
