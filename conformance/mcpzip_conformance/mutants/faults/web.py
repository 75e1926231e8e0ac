"""Faults of HTTP."""

import asyncio
from collections.abc import Mapping, MutableMapping

from mcpzip.wire import is_json, join_object, quote, with_members
from mcpzip_conformance.channel import Channel
from mcpzip_conformance.channel.http import HttpChannel
from mcpzip_conformance.mutants.faults.fault import Fault
from mcpzip_conformance.mutants.relay.exchange import (
    EVENTS,
    JSON,
    Headers,
    Receive,
    Refusal,
    Scope,
    Send,
    reply,
)
from mcpzip_conformance.mutants.relay.http import HttpSession, Line, Web
from mcpzip_conformance.mutants.relay.naming import members
from mcpzip_conformance.mutants.relay.relay import Parts
from mcpzip_conformance.mutants.relay.upstream import Link

HTTP = "names-http"
OF_ONE_CONNECTION = (
    "shared.logs",
    "shared.notifications",
    "shared.unsubscribe",
    "shared.elicitation",
    "shared.sampling",
    "shared.roots",
    "shared.left-behind",
    "shared.capabilities",
)
"""What else a proxy fails that has one connection for all clients."""


class LetsAnyoneIn(Web):
    def check_access(self, scope: Scope, headers: Headers) -> None:
        """Come in."""


class AnyHost(Web):
    def check_access(self, scope: Scope, headers: Headers) -> None:
        super().check_access(scope, {**headers, "host": f"localhost:{scope['server'][1]}"})


class Numbered(Web):
    def new_session(self) -> HttpSession:
        client = super().new_session()
        del self.sessions[client.id]
        client.id = f"session-{len(self.sessions) + 1:08}"
        self.sessions[client.id] = client
        return client


class Spaced(Web):
    def new_session(self) -> HttpSession:
        client = super().new_session()
        del self.sessions[client.id]
        client.id = f"{client.id[:16]} {client.id[16:]}"
        self.sessions[client.id] = client
        return client


class AnySession(Web):
    def find_session(self, headers: Headers) -> HttpSession:
        id = headers.get("mcp-session-id", "")
        if id and id not in self.sessions:
            self.sessions[id] = HttpSession(self.config, self.session)
        return super().find_session(headers)


class KeepsEnded(Web):
    async def delete(self, headers: Headers, send: Send) -> None:
        self.find_session(headers)
        await reply(send, 204)


class AnyVersion(Web):
    def find_session(self, headers: Headers) -> HttpSession:
        return super().find_session(
            {key: value for key, value in headers.items() if key != "mcp-protocol-version"}
        )


class IgnoresHead(Web):
    """Doesn't compare the headers of a request with its body."""

    async def post(self, headers: Headers, body: bytes, receive: Receive, send: Send) -> None:
        message = members(body)
        params = members(message.get("params"))
        name = params.get("name", params.get("uri", b'""'))[1:-1].decode()
        said = {"mcp-method": message.get("method", b'""')[1:-1].decode(), "mcp-name": name}
        await super().post({**headers, **said}, body, receive, send)


class NoStream(Web):
    async def get(self, headers: Headers, receive: Receive, send: Send) -> None:
        raise Refusal(404, "There is no stream.")


class SaysOk(Web):
    """Answers notifications with 200."""

    async def post(self, headers: Headers, body: bytes, receive: Receive, send: Send) -> None:
        async def send_ok(message: MutableMapping[str, object]) -> None:
            await send({**message, "status": 200} if message.get("status") == 202 else {**message})

        await super().post(headers, body, receive, send_ok)


class TakesAnyBody(Web):
    async def post(self, headers: Headers, body: bytes, receive: Receive, send: Send) -> None:
        if is_json(body) and body.startswith(b"{"):
            await super().post(headers, body, receive, send)
        else:
            await reply(send, 200, b'{"jsonrpc":"2.0","id":null,"result":{}}', {"content-type": JSON})


class WantsAccept(Web):
    async def post(self, headers: Headers, body: bytes, receive: Receive, send: Send) -> None:
        if headers.get("accept") != f"{JSON}, {EVENTS}":
            raise Refusal(406, "Accept application/json, text/event-stream.")
        await super().post(headers, body, receive, send)


class OneRoom(Web):
    """Gives all clients the same session."""

    def new_session(self) -> HttpSession:
        for client in self.sessions.values():
            return client
        return super().new_session()


class OneConnection(Web):
    """Gives every session the connections of the first."""

    def new_session(self) -> HttpSession:
        client = super().new_session()
        first = next(iter(self.sessions.values()))
        if first is not client:
            client.session.servers = first.session.servers
        return client


class TellsAll(Web):
    """Sends messages that belong to no request, and logs, to all clients."""

    def new_session(self) -> HttpSession:
        client = super().new_session()
        own = client.session.forward_notification

        def forward_notification(
            server: str, method: str, params: bytes | None, about: bytes | None, *, subscribed: bool
        ) -> None:
            own(server, method, params, about, subscribed=subscribed)
            for other in self.sessions.values():
                if other is not client and method == "notifications/message":
                    other.session.notify(method, params)

        client.session.forward_notification = forward_notification  # type: ignore[method-assign]
        return client


class KeepsGoing(Web):
    """Doesn't cancel a request when the client hangs up."""

    async def next(self, said: asyncio.Queue[Line], receive: Receive, client: HttpSession | None) -> Line:
        return await said.get()


class OnEveryAddress(Web):
    address = "0.0.0.0"


class PassesToken(Web):
    """Sends the client's token to servers with each call."""

    async def post(self, headers: Headers, body: bytes, receive: Receive, send: Send) -> None:
        message = members(body)
        token = headers.get("authorization")
        if token is not None and message.get("method") == b'"tools/call"':
            params = members(message.get("params"))
            meta = with_members(params.get("_meta", b"{}"), {"token": quote(token)})
            body = with_members(body, {"params": join_object({**params, "_meta": meta})})
        await super().post(headers, body, receive, send)


class FollowsRedirects(Link):
    async def connected(self) -> Channel:
        channel = await super().connected()
        assert isinstance(channel, HttpChannel)
        channel._client.follow_redirects = True
        return channel


FAULTS: Mapping[str, Fault] = {
    "lets-anyone-in": Fault("lets any page in", "security.origin", Parts(web=LetsAnyoneIn), HTTP),
    "any-host": Fault("answers to any name", "security.host", Parts(web=AnyHost), HTTP),
    "on-every-address": Fault(
        "listens on every address", "security.loopback", Parts(web=OnEveryAddress), HTTP
    ),
    "numbers-sessions": Fault("numbers its sessions", "security.session-ids", Parts(web=Numbered), HTTP),
    "spaces-sessions": Fault(
        "gives session ids with a space", "protocol.http-session-id", Parts(web=Spaced), HTTP
    ),
    "any-session": Fault(
        "takes any session id for one",
        "protocol.http-unknown-session",
        Parts(web=AnySession),
        HTTP,
        also=("protocol.http-session-ended",),
    ),
    "keeps-ended": Fault(
        "keeps sessions that were ended", "protocol.http-session-ended", Parts(web=KeepsEnded), HTTP
    ),
    "any-header-version": Fault(
        "takes any MCP-Protocol-Version", "protocol.http-version-header", Parts(web=AnyVersion), HTTP
    ),
    "ignores-head": Fault(
        "does not compare head and body", "protocol.http-modern-headers", Parts(web=IgnoresHead), HTTP
    ),
    "no-stream": Fault("answers a GET with 404", "protocol.http-get", Parts(web=NoStream), HTTP),
    "says-ok": Fault(
        "answers notifications with 200", "protocol.http-notification-accepted", Parts(web=SaysOk), HTTP
    ),
    "takes-any-body": Fault(
        "takes what is no message", "protocol.http-malformed-body", Parts(web=TakesAnyBody), HTTP
    ),
    "wants-accept": Fault(
        "wants Accept spelt in one way", "protocol.http-accepts", Parts(web=WantsAccept), HTTP
    ),
    "one-client": Fault(
        "has one session for all",
        "security.sessions-apart",
        Parts(web=OneRoom),
        HTTP,
        also=(
            "conversation.cancel-stays-apart",
            "conversation.questions-stay-apart",
            "shared.results",
            "shared.progress",
            "shared.logs",
            "shared.notifications",
            "shared.errors",
            "shared.cancel",
            "shared.unsubscribe",
            "shared.elicitation",
            "shared.capabilities",
            "shared.disconnect",
            "shared.flood",
        ),
    ),
    "one-connection": Fault(
        "has one connection for all clients",
        "conversation.questions-stay-apart",
        Parts(web=OneConnection),
        HTTP,
        also=OF_ONE_CONNECTION,
    ),
    "tells-all": Fault(
        "tells every client what servers log",
        "security.sessions-apart",
        Parts(web=TellsAll),
        HTTP,
        also=("shared.logs",),
    ),
    "keeps-going": Fault(
        "does not mind that a client hangs up",
        "conversation.cancel-reaches-server-modern",
        Parts(web=KeepsGoing),
        HTTP,
    ),
    "passes-token": Fault(
        "passes its client's token on", "security.client-token", Parts(web=PassesToken), HTTP
    ),
    "follows-redirects": Fault(
        "follows a server that sends it on",
        "security.server-redirect",
        Parts(link=FollowsRedirects),
        "names-remote",
    ),
}
