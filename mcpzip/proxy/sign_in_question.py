"""The question to a person whether to sign in to a server, which their client asks by opening a page.

The rules:

1. It is asked of clients that declared URL-mode elicitation (spec: client/elicitation), once for a call. All
   others get the error, which names the page.
2. The URL is that of the page, which is the same for all, and has no secret in it: whoever opens it signs in
to
   the page first. So nobody can sign in for somebody else by passing it on ("Phishing", in the same place).
3. That a person opens the page isn't yet that they have signed in: the call waits for that, for a while.
"""

from secrets import token_urlsafe

from mcpzip.model.errors import LoginNeededError
from mcpzip.policy.question import ELICIT, action_of
from mcpzip.proxy.call import ask_client
from mcpzip.proxy.client_capabilities import URL_ELICITATION, has_capability
from mcpzip.proxy.exchange import CONTINUATION_MEMBERS, Exchange, members
from mcpzip.proxy.person_upstreams import PersonUpstreams
from mcpzip.wire import Era, JsonRpcError, join_object, quote

PATIENCE = 60.0
"""Seconds that a call waits for a person who has opened the page to sign in."""
_KEY = "mcpzip-sign-in"
"""Of our question among the `inputRequests`."""


class SignInQuestion:
    """That of one call."""

    def __init__(self, exchange: Exchange) -> None:
        """Takes the answer of a modern client out of ``exchange``: the server has asked nothing."""
        self._exchange = exchange
        responses = members(exchange.fields.get("inputResponses"))
        self._answer = responses.get(_KEY)
        if self._answer is not None:
            exchange.fields = {
                key: each for key, each in exchange.fields.items() if key not in CONTINUATION_MEMBERS
            }

    async def ask(self, error: LoginNeededError, own: PersonUpstreams) -> bytes | bool:
        """Whether the person has signed in, because of ``error``; for a modern client that was not asked yet,
        the result that asks it. own: what the person has of servers.
        """
        exchange = self._exchange
        if not has_capability(exchange.capabilities, URL_ELICITATION):
            return False
        message = f"To use {error.server} with an account of your own, sign in to it on this page."
        params = {"mode": b'"url"', "message": quote(message), "url": quote(error.command)}
        answer = self._answer
        if exchange.client.era is Era.MODERN:
            if answer is None:
                return _input_required(params)
        else:
            way = exchange.request or exchange.client.request
            params["elicitationId"] = quote(token_urlsafe(16))
            try:
                answer = await ask_client(way, exchange.capabilities, ELICIT, join_object(params))
            except JsonRpcError:
                return False
        return action_of(answer) == "accept" and await own.signs_in(error.server, PATIENCE)


def _input_required(params: dict[str, bytes]) -> bytes:
    """The result that asks a modern client (spec 2026-07-28: basic/patterns/mrtr)."""
    request = join_object({"method": quote(ELICIT), "params": join_object(params)})
    return join_object({"resultType": b'"input_required"', "inputRequests": join_object({_KEY: request})})
