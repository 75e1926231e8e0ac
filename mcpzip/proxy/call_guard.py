"""What stands between a call of a tool and its server: the policy of the config.

The rules:

1. A call that the policy denies, or about which a person said no, never reaches a server.
2. No tool of mcpzip allows a call. A person does, by the client's elicitation or by `mcpzip allow`.
3. A result passes unchanged. Without a policy nothing here runs.
"""

import os
import time
from collections.abc import Awaitable, Callable
from shlex import quote as quote_for_shell

from mcpzip.config import Config
from mcpzip.config.paths import command_line
from mcpzip.model.entry import Entry
from mcpzip.model.errors import CallRefusedError
from mcpzip.model.quoting import named, quoted
from mcpzip.policy.allowances import AllowedError, allowances
from mcpzip.policy.canonical import arguments_hash, call_hash, definition_hash
from mcpzip.policy.decision import Decisions, Verdict
from mcpzip.policy.question import ELICIT, action_of, question
from mcpzip.proxy.approvals import Approvals
from mcpzip.proxy.call import ask_client
from mcpzip.proxy.catalog_state import CatalogState
from mcpzip.proxy.client_capabilities import has_capability
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.exchange import Client, Exchange, members
from mcpzip.proxy.input_required import is_input_required
from mcpzip.system.threads import in_thread
from mcpzip.wire import Era, JsonRpcError, join_object, quote

_FORM = ("elicitation", "form")
_KEY = "approval"
"""Of our question among the `inputRequests`."""
_CONTINUATION = ("inputResponses", "requestState")

Send = Callable[[], Awaitable[tuple[bytes, bool]]]
"""Makes the call: its result, and whether that is a success."""


class CallGuard:
    """Decides about the calls of all clients. Everything runs on one event loop."""

    def __init__(self, current: CurrentConfig, catalog_state: CatalogState) -> None:
        self._current, self._catalog_state = current, catalog_state
        self._decided_for: Config | None = None
        self._decisions_now = Decisions(current.config)
        self._approvals = Approvals()

    @property
    def decisions(self) -> Decisions:
        """Those of the config in use."""
        config = self._current.config
        if config is not self._decided_for:
            self._decided_for, self._decisions_now = config, Decisions(config)
        return self._decisions_now

    async def call(
        self, entry: Entry, arguments: bytes, exchange: Exchange, send: Send
    ) -> tuple[bytes, bool]:
        """What ``send`` returns, if the call may run; else the question to a modern client whether it may.
        arguments: JSON text, as the server would get them. Raises CallRefusedError, and what ``send`` raises.
        """
        verdict = self.decisions.of(entry)
        if verdict.decision == "deny":
            raise self._denied(entry, verdict)
        if verdict.decision == "allow" and not self._approvals.is_handle(
            exchange.fields.get("requestState", b"")
        ):
            return await send()
        return await self._with_approval(entry, verdict, arguments, exchange, send)

    def note(self, entry: Entry) -> str:
        """A sentence about calls of ``entry`` for `describe_tool`; "" if they run."""
        verdict = self.decisions.of(entry)
        if verdict.decision == "deny":
            return f"Denied by policy ({verdict.rule}): calls are refused."
        if verdict.decision == "ask":
            return f"By policy ({verdict.rule}) a person is asked before each call."
        return ""

    def remove_client(self, client: Client) -> None:
        """``client`` is gone."""
        self._approvals.remove_client(client)

    async def _with_approval(
        self, entry: Entry, verdict: Verdict, arguments: bytes, exchange: Exchange, send: Send
    ) -> tuple[bytes, bool]:
        client, call = exchange.client, call_hash(entry, arguments)
        modern = client.era is Era.MODERN
        answer = self._answer(exchange, call) if modern else None
        if answer is not None:
            _check_accepted(answer)
        elif verdict.decision == "ask" and not (
            modern and self._approvals.continues(client, call, exchange.fields.get("requestState"))
        ):
            problem = await self._allowed(entry, arguments)
            if problem is not None:
                params = self._question(entry, verdict, arguments, exchange, problem)
                if modern:
                    return _input_required(params, self._approvals.ask(client, call)), False
                _check_accepted(await self._asked(entry, verdict, exchange, params, problem))
            self._check_unchanged(entry)
        result, succeeded = await send()
        if modern and not succeeded and is_input_required(result):
            self._approvals.goes_on(client, call, members(result).get("requestState"))
        return result, succeeded

    async def _allowed(self, entry: Entry, arguments: bytes) -> str | None:
        """None if `mcpzip allow` has allowed the call; else "", or why that can't be known."""
        path, now = self._current.config.path, time.time()
        try:
            found = await in_thread(lambda: allowances(path, now), "allowed")
        except AllowedError as error:
            return str(error)
        definition = definition_hash(entry)
        for each in found:
            same = each.name == entry.name and each.definition == definition
            if same and each.arguments in ("", arguments_hash(arguments)):
                return None
        return ""

    def _answer(self, exchange: Exchange, call: bytes) -> bytes | None:
        """The answer of a modern client to our question about ``call``; None if ``exchange`` brings none. It
        is removed from there, because the server has asked nothing.
        """
        state = exchange.fields.get("requestState", b"")
        if not self._approvals.is_handle(state):
            return None
        responses = members(exchange.fields.get("inputResponses"))
        exchange.fields = {key: each for key, each in exchange.fields.items() if key not in _CONTINUATION}
        return responses.get(_KEY) if self._approvals.answered(exchange.client, call, state) else None

    def _question(
        self, entry: Entry, verdict: Verdict, arguments: bytes, exchange: Exchange, problem: str
    ) -> bytes:
        """The params of the question to the person. Raises CallRefusedError if they can't be asked."""
        if not has_capability(exchange.capabilities, _FORM):
            raise self._not_asked(entry, verdict, "this client can't ask one", problem)
        params = question(entry, verdict.risk, arguments)
        if params is None:
            raise self._not_asked(entry, verdict, "the arguments are too long to be shown to one", problem)
        return params

    async def _asked(
        self, entry: Entry, verdict: Verdict, exchange: Exchange, params: bytes, problem: str
    ) -> bytes:
        """The answer of a legacy client to the question. Raises CallRefusedError if it can't be asked."""
        try:
            way = exchange.request or exchange.client.request
            return await ask_client(way, exchange.capabilities, ELICIT, params)
        except JsonRpcError as error:
            reason = f"this client did not ask one: {quoted(str(error))}"
            raise self._not_asked(entry, verdict, reason, problem) from error

    def _check_unchanged(self, entry: Entry) -> None:
        """Raises CallRefusedError if the tool or the policy changed while the person was asked."""
        now = self._catalog_state.visible.get(entry.name)
        if now is not None and now.raw != entry.raw:
            raise CallRefusedError(
                f"{named(entry.name)} was changed by its server while a person was asked. Nothing ran: call "
                "it again, so that they are asked about what it is now."
            )
        verdict = self.decisions.of(entry)
        if verdict.decision == "deny":
            raise self._denied(entry, verdict)

    def _denied(self, entry: Entry, verdict: Verdict) -> CallRefusedError:
        return CallRefusedError(
            f"{named(entry.name)} is denied by policy: {self._line(verdict, 'deny')}. Nothing ran. Only a "
            "person can change that, in the config."
        )

    def _not_asked(self, entry: Entry, verdict: Verdict, reason: str, problem: str) -> CallRefusedError:
        name = entry.name
        allow = command_line(["mcpzip", "allow"], self._current.config.path, os.environ)
        command = f"{allow} {quote_for_shell(name)} --for 1h"
        return CallRefusedError(
            f"A person is to be asked before {named(name)} runs, by policy ({self._line(verdict, 'ask')}), "
            f"and {reason}. Nothing ran. {f'{problem} ' if problem else ''}A person can allow it in a "
            f"terminal: {command} – or for good in the config: "
            f'"policy": {{"tools": {{{quote(name).decode("utf-8", "replace")}: "allow"}}}}'
        )

    def _line(self, verdict: Verdict, decision: str) -> str:
        return f'{verdict.rule} is "{decision}" in {self._current.config.path}'


def _input_required(params: bytes, state: str) -> bytes:
    """The result that asks a modern client (spec 2026-07-28: basic/patterns/mrtr)."""
    request = join_object({"method": quote(ELICIT), "params": params})
    return join_object(
        {
            "resultType": b'"input_required"',
            "inputRequests": join_object({_KEY: request}),
            "requestState": quote(state),
        }
    )


def _check_accepted(answer: bytes) -> None:
    """Raises CallRefusedError unless the person has said yes."""
    action = action_of(answer)
    if action != "accept":
        did = {"decline": "declined this call", "cancel": "closed the question about this call"}
        said = did.get(action, "did not answer the question about this call")
        raise CallRefusedError(f"The person who was asked {said}. Nothing ran. Don't try it in another way.")
