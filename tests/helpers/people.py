"""People who call over HTTP, and what they ask of an endpoint, in process."""

import json
from typing import Any

from helpers.driver import MODERN

from mcpzip.model.principal import Principal
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.server.endpoint import Endpoint, error_response
from mcpzip.wire import Era, ScopeError

Json = dict[str, Any]

ISSUER = "https://login.example.org"
META = "io.modelcontextprotocol/"
FORM = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {"elicitation": {"form": {}}}}


def person(name: str, *groups: str, scopes: tuple[str, ...] = ()) -> Principal:
    """A person of `ISSUER`."""
    return Principal(ISSUER, name, name, frozenset(groups), frozenset(scopes))


ANN, BOB = person("ann", "keepers"), person("bob")


async def ask(
    endpoint: Endpoint, who: Principal | None, method: str, params: Json, client: Client | None = None
) -> Json:
    """The reply to a request of a modern client of ``who``, or of ``client``: its result, or its error."""
    client = client or Client(Era.MODERN, has_session=False, principal=who)
    exchange = Exchange(client, b"1", json.dumps({"_meta": FORM, **params}).encode())
    exchange.capabilities = client.capabilities = json.dumps(FORM[f"{META}clientCapabilities"]).encode()
    try:
        result = endpoint.begin(method, exchange)
        text = result if isinstance(result, bytes) else await result
        return dict(json.loads(endpoint.finished(method, exchange, text)))
    except Exception as failure:
        error = error_response(failure)
        told = {"code": error.code, "message": error.message}
        if isinstance(error, ScopeError):
            told["scopes"] = list(error.scopes)
        return {"error": told | ({} if error.data is None else {"data": json.loads(error.data)})}


def own(tool: str, **arguments: object) -> Json:
    """The params of a call of one of mcpzip's own tools."""
    return {"name": tool, "arguments": arguments}


def use(name: str, **arguments: object) -> Json:
    """The params of a call of a server's tool by `execute_tool`."""
    return own("execute_tool", name=name, arguments=arguments)


def tool(name: str, description: str, **more: object) -> Json:
    """A tool of a fake, which answers with its name."""
    return {"name": name, "description": description, "result": {"text": name}, **more}
