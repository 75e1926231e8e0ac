"""Who asks, and the ways back to it.

The rule: nothing below the server floor knows how a client is connected. A `Client` lives as long as a client
can be told from others (a stdio process, a legacy HTTP session; a modern HTTP request is a client of its
own); an `Exchange` lives as long as one of its requests.
"""

from collections.abc import Awaitable, Callable, Hashable
from itertools import count
from typing import TYPE_CHECKING

import msgspec

from mcpzip.model import limits
from mcpzip.model.principal import Principal
from mcpzip.wire import (
    Era,
    NotAnObject,
    progress_token_of,
    split_object,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpzip.checks import Finding
    from mcpzip.checks.said import What
    from mcpzip.proxy.call_record import CallRecord
    from mcpzip.telemetry.traces import RequestTrace

Notify = Callable[[str, bytes | None], None]
"""Sends the client a notification: its method and params (JSON text). Never waits, never raises."""
SendRequest = Callable[[str, bytes | None], Awaitable[bytes]]
"""Sends the client a request and returns the result's JSON text. Raises transport.base.JsonRpcError when the
client answers with an error or can't be asked; cancelling it cancels the request.
"""

CONTINUATION_MEMBERS = ("inputResponses", "requestState")
"""Members of the params with which a modern request is made again (spec: basic/patterns/mrtr)."""
ENVELOPE_MEMBERS = ("_meta", *CONTINUATION_MEMBERS)
"""Members of a request's params that say nothing of what is asked for."""

INTERACTIVE = ("sampling", "elicitation", "roots")
"""The capabilities of a client that can be asked something."""


def discard_notification(method: str, params: bytes | None) -> None:
    """The way back to a client that has none."""


class Client(msgspec.Struct, eq=False):
    """A downstream client.

    era: how it speaks, None where that means nothing (a command). capabilities: what it can be asked, JSON
    text, as it declared it. has_session: whether it makes more than one request. notify: sends it a
    notification outside any request. request: sends it a request outside any request, None where there is no
    such way. log_level: the least important log messages that it wants, None when it never said. folder: its
    working folder, None where that is ours. info: its `Implementation`, JSON text, "" until it is known.
    pid: of the process behind it, 0 if that isn't known. number: counts the clients of this process.
    principal: who is behind it, as its last request said; None for whoever uses this machine, or where nobody
    signs in.
    """

    era: Era | None = None
    capabilities: bytes = b"{}"
    has_session: bool = True
    notify: Notify = discard_notification
    request: SendRequest | None = None
    log_level: str | None = None
    folder: str | None = None
    info: bytes = b""
    pid: int = 0
    number: int = msgspec.field(default_factory=count(1).__next__)
    is_only_client: bool = False
    """Whether it is the only client there can be, as on stdio."""
    principal: Principal | None = None
    interactive: tuple[bytes, bool] = b"{}", False
    """Capabilities, and whether whoever declared them can be asked anything."""

    @property
    def owner(self) -> Hashable:
        """Whom what is kept for it belongs to: itself, or if it makes one request only, whoever is behind it.
        None if nobody knows that: it can't be told from others.
        """
        if self.has_session:
            return self
        return None if self.principal is None else self.principal.id

    @property
    def is_interactive(self) -> bool:
        """Whether it declared that it can be asked anything. Every call asks, so its capabilities are read
        once.
        """
        if self.interactive[0] is not self.capabilities:
            declared = members(self.capabilities).keys()
            self.interactive = self.capabilities, not declared.isdisjoint(INTERACTIVE)
        return self.interactive[1]


class Said(msgspec.Struct, eq=False):
    """A text of a server. tool: that was called, "" if none was or that isn't known. what: see
    `checks.said.What`. text: its JSON text, as far as it is looked at. found: None until that was done.
    """

    server: str
    tool: str
    what: "What"
    text: bytes
    found: "Sequence[Finding] | None" = None


class Exchange(msgspec.Struct, eq=False):
    """One request of a client.

    id: of the request, JSON text as the client spelt it. params: JSON text as received, None for none; they
    are read once, into fields and meta_fields: their members and those of their ``_meta``, each as JSON text.
    notify, request: as in `Client`, on this request's own stream where the transport has one; ``request`` is
    None in the modern era, which has no requests from server to client. log_level: the least important log
    messages that are wanted. principal: who makes it, as in `Client`. said: the errors and questions of
    servers that it brought about. record: of the call of a tool that is made for it; None before, and where
    it makes none. parent: the number of the record of the program that makes it, 0 for none. trace: its
    spans, None if there is no telemetry.
    """

    client: Client
    id: bytes = b"null"
    params: bytes | None = None
    notify: Notify = discard_notification
    request: SendRequest | None = None
    capabilities: bytes = b"{}"
    log_level: str | None = None
    fields: dict[str, bytes] = {}
    meta_fields: dict[str, bytes] = {}
    said: list[Said] = []
    principal: Principal | None = None
    trace: "RequestTrace | None" = None
    record: "CallRecord | None" = None
    parent: int = 0

    def __post_init__(self) -> None:
        self.principal = self.principal or self.client.principal
        self.fields = members(self.params)
        if (meta := self.fields.get("_meta")) is not None:
            self.meta_fields = members(meta)

    @property
    def meta(self) -> bytes | None:
        """The request's ``_meta``; None when it has none that is an object."""
        meta = self.fields.get("_meta")
        return meta if meta is not None and meta.startswith(b"{") else None

    @property
    def progress_token(self) -> bytes | None:
        """The token under which the client wants progress, as JSON text; None when it wants none, or
        under one that is too long to be repeated.
        """
        if not self.meta_fields:
            return None
        token = progress_token_of(self.meta_fields)
        return None if token is None or len(token) > limits.ID else token


def members(text: bytes | None) -> dict[str, bytes]:
    """The members of a JSON object, each as JSON text; none when it is no object."""
    if text is None:
        return {}
    try:
        return split_object(text)
    except (NotAnObject, RecursionError):
        return {}
