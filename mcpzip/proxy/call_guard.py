"""What stands between a call of a tool and its server: the policy and the audit log of the config.

The rules:

1. A call that the policy denies, or about which a person said no, never reaches a server.
2. No tool of mcpzip allows a call. A person does, by the client's elicitation or by `mcpzip allow`.
3. A result passes unchanged. Without a policy and an audit log nothing here runs.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Hashable
from functools import partial

import msgspec

from mcpzip.config import Config
from mcpzip.config.paths import mcpzip_command
from mcpzip.config.schema import AuditConfig, FlowConfig
from mcpzip.model.entry import Entry
from mcpzip.model.errors import CallRefusedError
from mcpzip.model.limits import ASKED_ARGUMENTS, SHOWN_LINE
from mcpzip.model.principal import Principal
from mcpzip.model.quoting import named, quoted
from mcpzip.policy.allowances import Allowances, AllowedError
from mcpzip.policy.audit_destinations import open_destination
from mcpzip.policy.audit_log import AuditedCall, AuditLog
from mcpzip.policy.decision import Decisions, Verdict
from mcpzip.policy.flows import Flows, is_stricter
from mcpzip.policy.hashes import arguments_hash, call_hash, definition_hash
from mcpzip.policy.opening import open_allowances
from mcpzip.policy.question import ELICIT, Confirm, action_of, question, shown_arguments
from mcpzip.policy.refused import RefusedCall, id_of, remember
from mcpzip.proxy.approvals import Approvals
from mcpzip.proxy.call import ask_client
from mcpzip.proxy.call_record import PERSON_ANSWERED, PERSON_ASKED, note
from mcpzip.proxy.call_records import outcome_of, outcome_of_error
from mcpzip.proxy.client_capabilities import FORM_ELICITATION, has_capability
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.exchange import CONTINUATION_MEMBERS, Client, Exchange, members
from mcpzip.proxy.heard import checks_of
from mcpzip.proxy.input_required import is_input_required
from mcpzip.system.threads import begin_thread, in_thread
from mcpzip.wire import Era, JsonRpcError, join_object, quote

NO_ACCESS = "no access"
"""The outcome of a call of a tool that its person may not use."""
_KEY = "approval"
"""Of our question among the `inputRequests`."""

Offered = Callable[[Principal | None, str], Entry | None]
"""Finds the tool with a name as it is offered now to those who may use it, and by whom it is called."""
Send = Callable[[], Awaitable[tuple[bytes, bool]]]
"""Makes the call: its result, and whether that is a success."""


class _GuardedCall(msgspec.Struct, eq=False):
    """A call on its way. is_listed: whether its tool was offered at the beginning. about: sentences about the
    arguments. approved_by: how a person allowed it. outcome: "" until that is known.
    """

    entry: Entry
    arguments: bytes
    exchange: Exchange
    verdict: Verdict
    is_listed: bool = True
    about: tuple[str, ...] = ()
    approved_by: str = ""
    outcome: str = ""


class CallGuard:
    """Decides about the calls of all clients. Everything runs on one event loop."""

    def __init__(self, current: CurrentConfig, offered: Offered, warn: Callable[[str], None]) -> None:
        """warn: called once if the audit log can't be written."""
        self._current, self._offered, self._warn = current, offered, warn
        self._audited_for: AuditConfig | None = None
        self._log: AuditLog | None = None
        self._flows_of, self._flows_now = current.config.policy.flows, Flows(current.config.policy.flows)
        self._begun: dict[Hashable, set[FlowConfig]] = {}
        """The flows that count, by the owner of what is kept for a client (`Client.owner`)."""
        self._decided_for: Config | None = None
        self._decisions_now = Decisions(current.config)
        self._approvals = Approvals()
        self._allowances: Allowances | None = None
        """Opened for the first call about which a person is asked."""

    @property
    def decisions(self) -> Decisions:
        """Those of the config in use."""
        config = self._current.config
        if config is not self._decided_for:
            self._decided_for, self._decisions_now = config, Decisions(config)
        return self._decisions_now

    async def call(
        self,
        entry: Entry,
        arguments: bytes,
        exchange: Exchange,
        send: Send,
        about: tuple[str, ...] = (),
        confirm: Confirm | None = None,
    ) -> tuple[bytes, bool]:
        """What ``send`` returns, if the call may run; else the question to a modern client whether it may.
        arguments: JSON text, as the server would get them. about: sentences about them for a person.
        confirm: why a person is asked even if the policy lets the call run. Raises CallRefusedError, and what
        ``send`` raises.
        """
        is_listed = self._offered(exchange.principal, entry.name) is not None
        verdict = self._verdict(entry, exchange.client)
        if confirm is not None and verdict.decision != "deny":
            rule = verdict.rule if verdict.decision == "ask" else confirm.rule
            verdict = Verdict("ask", rule, verdict.risk, verdict.after or confirm.after)
        call = _GuardedCall(entry, arguments, exchange, verdict, is_listed, about)
        if exchange.record is not None:
            exchange.record.decided(verdict.decision, verdict.rule)
        send = self._noting(entry, exchange.client, send)
        log = self._audit_log()
        if log is None:
            return await self._decided(call, send)
        at, started = time.time(), time.perf_counter()
        try:
            result, succeeded = await self._decided(call, send)
            call.outcome = call.outcome or outcome_of(result, succeeded)
            return result, succeeded
        except BaseException as error:
            call.outcome = outcome_of_error(error)
            raise
        finally:
            client, seconds = exchange.client, time.perf_counter() - started
            made = entry, arguments, call.verdict, call.approved_by, call.outcome
            found = partial(checks_of, exchange.said) if exchange.said else tuple[str, ...]
            asked = client.info, client.pid, client.number, exchange.principal
            log.add(AuditedCall(at, seconds, *made, *asked, found))

    async def _decided(self, call: "_GuardedCall", send: Send) -> tuple[bytes, bool]:
        verdict = call.verdict
        if verdict.decision == "deny":
            raise self._denied(call.entry, verdict)
        state = call.exchange.fields.get("requestState", b"")
        if verdict.decision == "allow" and not self._approvals.is_handle(state):
            return await send()
        return await self._with_approval(call, send)

    def _verdict(self, entry: Entry, client: Client) -> Verdict:
        """What the config decides about a call of ``entry`` by ``client``."""
        verdict = self.decisions.of(entry)
        if begun := self._begun.get(client.owner):
            flow = self._flows.decision(entry, verdict.risk, begun)
            if flow is not None and is_stricter(flow, verdict.decision):
                return Verdict(flow.decision, flow.path, verdict.risk, flow.source)
        return verdict

    def _noting(self, entry: Entry, client: Client, send: Send) -> Send:
        """``send``, which notes the flows that it begins."""
        if not self._current.config.policy.flows:
            return send

        async def noted() -> tuple[bytes, bool]:
            self.saw(client, entry.server, entry.name)
            return await send()

        return noted

    def saw(self, client: Client, server: str, name: str = "") -> None:
        """``client`` is sent something of ``server``. name: of the tool, with its server; "" for a prompt or
        a resource. Modern clients over HTTP can't be told apart, unless people sign in: what one has seen,
        all have.
        """
        begun = self._flows.begun_by(server, name)
        if begun:
            self._begun.setdefault(client.owner, set()).update(begun)

    @property
    def _flows(self) -> Flows:
        """Those of the config in use."""
        flows = self._current.config.policy.flows
        if flows is not self._flows_of:
            self._flows_of, self._flows_now = flows, Flows(flows)
        return self._flows_now

    def _audit_log(self) -> AuditLog | None:
        """That of the config in use."""
        audit = self._current.config.audit
        if audit != self._audited_for:
            if self._log is not None:
                begin_thread(threading.Thread(target=self._log.close, name="audit", daemon=True))
            self._audited_for, self._log = audit, None
            if audit is not None:
                loop = asyncio.get_running_loop()

                def warn(sentence: str) -> None:
                    if not loop.is_closed():
                        loop.call_soon_threadsafe(self._warn, sentence)

                destination = open_destination(audit, self._current.config.path)
                self._log = AuditLog(destination, values=audit.values, warn=warn)
        return self._log

    async def close(self) -> None:
        """Writes the rest of the audit log, and ends the connection to the store."""
        if self._log is not None:
            await in_thread(self._log.close, "audit")
        if self._allowances is not None:
            await in_thread(self._allowances.close, "allowed")

    def refused(
        self, entry: Entry, arguments: bytes, exchange: Exchange, error: CallRefusedError
    ) -> CallRefusedError:
        """Has a call written down that ``error`` refuses before the policy is asked. Returns the error for
        the client: that of the policy, if it denies the call however it is made.
        """
        verdict = self._verdict(entry, exchange.client)
        if exchange.record is not None:
            exchange.record.decided(verdict.decision, verdict.rule)
        if verdict.decision == "deny":
            error = self._denied(entry, verdict)
        self._log_refused(entry, arguments, exchange, verdict, error.outcome)
        return error

    def no_access(self, entry: Entry, arguments: bytes, exchange: Exchange) -> None:
        """Has a call written down of a tool that its person may not use."""
        verdict = Verdict("deny", "access", self.decisions.risk(entry))
        self._log_refused(entry, arguments, exchange, verdict, NO_ACCESS)

    def _log_refused(
        self, entry: Entry, arguments: bytes, exchange: Exchange, verdict: Verdict, outcome: str
    ) -> None:
        if (log := self._audit_log()) is not None:
            client = exchange.client
            made = entry, arguments, verdict, "", outcome
            asked = client.info, client.pid, client.number, exchange.principal
            log.add(AuditedCall(time.time(), 0.0, *made, *asked))

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
        self._begun.pop(client, None)

    async def _with_approval(self, call: "_GuardedCall", send: Send) -> tuple[bytes, bool]:
        entry, exchange, client = call.entry, call.exchange, call.exchange.client
        hashed, modern = call_hash(entry, call.arguments), client.era is Era.MODERN
        answer = self._answer(exchange, hashed) if modern else None
        state = exchange.fields.get("requestState")
        if answer is not None:
            _check_accepted(answer)
            call.approved_by = "person"
        elif call.verdict.decision == "ask" and modern and self._approvals.continues(client, hashed, state):
            call.approved_by = "earlier answer"
        elif call.verdict.decision == "ask":
            problem = await self._allowed(entry, call.arguments)
            call.approved_by = "mcpzip allow"
            if problem is not None:
                call.approved_by = ""
                params = await self._question(call, problem)
                if modern:
                    call.outcome = "asked"
                    if exchange.record is not None:
                        exchange.record.outcome = call.outcome
                    return _input_required(params, self._approvals.ask(client, hashed)), False
                _check_accepted(await self._asked(call, params, problem))
                call.approved_by = "person"
            self._check_unchanged(call)
        if exchange.record is not None:
            exchange.record.approved_by = call.approved_by
        result, succeeded = await send()
        if modern and not succeeded and is_input_required(result):
            self._approvals.goes_on(client, hashed, members(result).get("requestState"))
        return result, succeeded

    async def _allowed(self, entry: Entry, arguments: bytes) -> str | None:
        """None if `mcpzip allow` has allowed the call; else "", or why that can't be known."""
        if self._allowances is None:
            self._allowances = open_allowances(self._current.config)
        allowances, now = self._allowances, time.time()
        try:
            hashes = definition_hash(entry), arguments_hash(arguments)
            allowed = await in_thread(lambda: allowances.use(entry.name, *hashes, now), "allowed")
        except AllowedError as error:
            return str(error)
        return None if allowed else ""

    def _answer(self, exchange: Exchange, call: bytes) -> bytes | None:
        """The answer of a modern client to our question about ``call``; None if ``exchange`` brings none. It
        is removed from there, because the server has asked nothing.
        """
        state = exchange.fields.get("requestState", b"")
        if not self._approvals.is_handle(state):
            return None
        responses = members(exchange.fields.get("inputResponses"))
        exchange.fields = {
            key: each for key, each in exchange.fields.items() if key not in CONTINUATION_MEMBERS
        }
        return responses.get(_KEY) if self._approvals.answered(exchange.client, call, state) else None

    async def _question(self, call: "_GuardedCall", problem: str) -> bytes:
        """The params of the question to the person. Raises CallRefusedError if they can't be asked."""
        if not has_capability(call.exchange.capabilities, FORM_ELICITATION):
            raise await self._not_asked(call, "this client can't ask one", problem)
        params = question(call.entry, call.verdict.risk, call.arguments, call.verdict.after, call.about)
        if params is None:
            raise await self._not_asked(call, "the arguments are too long to be shown to one", problem)
        return params

    async def _asked(self, call: "_GuardedCall", params: bytes, problem: str) -> bytes:
        """The answer of a legacy client to the question. Raises CallRefusedError if it can't be asked."""
        exchange = call.exchange
        try:
            way = exchange.request or exchange.client.request
            note(exchange.record, PERSON_ASKED)
            return await ask_client(way, exchange.capabilities, ELICIT, params)
        except JsonRpcError as error:
            reason = f"this client did not ask one: {quoted(str(error))}"
            raise await self._not_asked(call, reason, problem) from error
        finally:
            note(exchange.record, PERSON_ANSWERED)

    def _check_unchanged(self, call: "_GuardedCall") -> None:
        """Raises CallRefusedError if the tool or the policy changed while the person was asked, or if the
        tool is no longer offered.
        """
        entry = call.entry
        now = self._offered(call.exchange.principal, entry.name)
        if call.is_listed and (now is None or now != entry):
            raise CallRefusedError(
                f"{named(entry.name)} was changed or withdrawn while a person was asked. Nothing ran: call "
                "it again, so that they are asked about what it is now.",
                "changed",
            )
        verdict = self.decisions.of(entry)
        if verdict.decision == "deny":
            raise self._denied(entry, verdict)

    def _denied(self, entry: Entry, verdict: Verdict) -> CallRefusedError:
        return CallRefusedError(
            f"{named(entry.name)} is denied by policy: {self._line(verdict, 'deny')}. Nothing ran. Only a "
            "person can change that, in the config.",
            "denied",
        )

    async def _not_asked(self, call: "_GuardedCall", reason: str, problem: str) -> CallRefusedError:
        name, verdict = call.entry.name, call.verdict
        path = self._current.config.path
        commands = []
        if call.is_listed:  # the command knows no other tools
            if number := await self._remembered(call):
                commands.append(f"only this call, once: {mcpzip_command(path, 'allow', '--call', number)}")
            allow = mcpzip_command(path, "allow", name, "--for", "1h")
            commands.append(f"every call for an hour: {allow}")
        in_terminal = f"in a terminal, {', or '.join(commands)} – or " if commands else ""
        return CallRefusedError(
            f"A person is to be asked before {named(name)} runs, by policy ({self._line(verdict, 'ask')}), "
            f"and {reason}. Nothing ran. {f'{problem} ' if problem else ''}A person can allow it "
            f"{in_terminal}for good in the config: "
            f'"policy": {{"tools": {{{quote(name).decode("utf-8", "replace")}: "allow"}}}}',
            "not asked",
        )

    async def _remembered(self, call: "_GuardedCall") -> str:
        """The id by which a person can allow ``call``; "" if it can't be kept for them."""
        entry, path = call.entry, self._current.config.path
        if len(call.arguments) > ASKED_ARGUMENTS:
            return ""
        if any(len(line) > SHOWN_LINE for line in shown_arguments(call.arguments).split("\n")):
            return ""  # a terminal would not show all of it
        number, text = id_of(call_hash(entry, call.arguments)), call.arguments.decode("utf-8", "replace")
        one = RefusedCall(number, entry.name, definition_hash(entry), text, time.time())
        try:
            await in_thread(lambda: remember(path, one), "refused")
        except OSError:
            return ""
        return number

    def _line(self, verdict: Verdict, decision: str) -> str:
        why = f", after results of {quoted(verdict.after)}" if verdict.after else ""
        return f'{verdict.rule} is "{decision}" in {self._current.config.path}{why}'


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
        sentence = f"The person who was asked {said}. Nothing ran. Don't try it in another way."
        raise CallRefusedError(sentence, "declined")
