"""The exceptions whose text reaches the user or a model.

    McpzipError
    ├── ConfigError              the config is invalid: change the key that it names
    │   └── CassetteError        (cassettes.files) a cassette can't be read or written: correct it
    ├── InvalidToolError         a server listed an invalid tool: tell the server's author
    ├── InvalidOfferError        a server listed an invalid prompt, resource or template: tell its author
    ├── InvalidCursorError       a client sent an unknown cursor: list again without a cursor
    ├── UnknownToolError         no such tool: use one of the nearest names, or search
    ├── UnknownOfferError        no such prompt or resource, or several servers have it
    │   ├── UnknownPromptError   use one of the names it gives, or list the prompts
    │   └── UnknownResourceError use one of the URIs it gives, or list the resources
    ├── InvalidArgumentsError    the arguments of execute_tool don't fit: correct what it names
    ├── KeptNoMoreError          a kept result is gone: call its tool again
    ├── OverloadedError          too many computations wait: try again later
    ├── CallRefusedError         the policy doesn't let a call run: a person has to allow it
    │   ├── TooManyCallsError    somebody makes more calls than they may: try again later
    │   └── NotCountedError      the store can't count a call that it has to count: try again later
    ├── InsufficientScopeError   somebody's token lacks scopes for a tool: get one that has them
    ├── LoginError               signing in or out failed: follow the remedy in its text
    ├── StoreError               the store can't be used: start it, or correct it, and try again
    ├── BusyError                (auth.failures) another process uses the same sign-in: try again
    ├── ConfigSaveError          (config.saving) the config was not saved: try again, or follow its text
    │   └── ConfigChangedError   (config.saving) it is not the one any more that was edited: edit it again
    ├── MigrationError           (clients.migration) servers can't be moved: correct the file that it names
    ├── DaemonSilentError        (server.daemon.asking) the daemon runs and doesn't answer: end its process
    ├── ExaminationError         (ui.examinations) checks of the page run already or too long: try again later
    ├── PinsUnusableError        (pins.store) the pins are unusable: mcpzip review --repair
    ├── AllowedError             (policy.allowances) the list of allowed calls is unusable: begin a new one
    ├── KeysError                (identity.api_keys) the file of API keys is unusable: correct or delete it
    ├── TrustError               (config.project) the list of trusted projects is unusable: delete it
    ├── JsonRpcError             (wire.errors) a request has a JSON-RPC error as its response: read its text
    └── UpstreamError            something is wrong with one server: follow its ``remedy``
        ├── UpstreamUnavailableError   there is no connection, nothing was sent: check the server's config
        │   └── LoginNeededError       run the command in its text to sign in
        ├── UpstreamTimeoutError       no answer in time, a call may have run: check before you repeat it
        ├── UpstreamListError          a list of the server is over a limit: make the server list less
        ├── UpstreamLostError          the connection ended during a request: repeat it if it can't have run
        └── UpstreamRpcError           (wire.errors) the server answered with a JSON-RPC error: read its text

A text is one or two sentences on one line of printable characters; it contains no secret, and ends with what
to do. Text of a server inside it is in quotation marks and cut. A JSON-RPC error of a server is also passed
on unchanged.

Exceptions that are caught inside mcpzip (`transport.base.ChannelClosedError`, `wire.NotAnObject` …) are
defined where they are raised, and are no `McpzipError`.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from mcpzip.model.limits import ASKED_URI
from mcpzip.model.quoting import names, one_line, shortened
from mcpzip.model.redaction import redact
from mcpzip.model.sanitize import spaced


class McpzipError(Exception):
    """The root. Its text can be shown to the user."""

    def __init__(self, sentence: str = "") -> None:
        super().__init__(spaced(redact(sentence)))


class ConfigError(McpzipError):
    """The config is invalid.

    file: its path. path: the key path inside it (``mcpServers.slack.url``), "" for the whole file. found:
    what is wrong there. remedy: what to write instead. place: its line and column, from 1, if it is no JSON;
    else (0, 0).
    """

    def __init__(
        self, file: str, path: str, found: str, remedy: str, *, place: tuple[int, int] = (0, 0)
    ) -> None:
        self.file, self.path, self.found, self.remedy, self.place = file, path, found, remedy, place
        where = f"{file}: {path}" if path else file
        super().__init__(f"{where}: {found}; {remedy}.")

    def within(self, path: str) -> str:
        """The sentence for a reader who knows that it is about the object at the key path ``path``: without
        the file, and with the rest of the key path.
        """
        rest = self.path.removeprefix(path).lstrip(".")
        return f"{rest}{': ' if rest else ''}{self.found}; {self.remedy}."


class InvalidToolError(McpzipError):
    """An item of a `tools/list` result that is no valid tool."""


class InvalidOfferError(McpzipError):
    """An item of a list that is no valid prompt, resource or resource template."""


class InvalidCursorError(McpzipError):
    """A cursor that we did not issue for this list (spec: server/utilities/pagination, "Error Handling")."""

    def __init__(self) -> None:
        super().__init__("This list has no page with this cursor. Begin again without one.")


class UnknownToolError(McpzipError):
    """No tool has this name. nearest: the most similar names, best first."""

    def __init__(
        self, name: str, nearest: Sequence[str] = (), otherwise: str = "Find tools with search_tools."
    ) -> None:
        """otherwise: what to do if no name is similar."""
        self.name, self.nearest = name, tuple(nearest)
        hint = f"The nearest: {names(self.nearest)}." if self.nearest else otherwise
        super().__init__(f"There is no tool {shortened(name)!r}. {hint}")


class UnknownOfferError(McpzipError):
    """No server, or more than one, has this prompt or resource.

    name: the requested name or URI. nearest: the most similar names, best first. several: whether more than
    one server may have it; ``nearest`` then are its unambiguous names.
    """

    word = "offer"

    def __init__(self, name: str, nearest: Sequence[str] = (), *, several: bool = False) -> None:
        self.name = name if len(name) <= ASKED_URI else shortened(name)
        self.nearest, self.several = tuple(nearest), several
        shown = repr(shortened(name))
        if several:
            sentence = f"More than one server may have the {self.word} {shown}. Ask for one of these: "
            super().__init__(f"{sentence}{names(self.nearest)}.")
        else:
            hint = f"The nearest: {names(self.nearest)}" if self.nearest else f"List the {self.word}s"
            super().__init__(f"There is no {self.word} {shown}. {hint}.")


class UnknownPromptError(UnknownOfferError):
    """No server, or more than one, has a prompt with this name."""

    word = "prompt"


class UnknownResourceError(UnknownOfferError):
    """No server, or more than one, has a resource with this URI."""

    word = "resource"


class KeptNoMoreError(McpzipError):
    """A kept result is not there any more, or is another client's."""

    def __init__(self, handle: str) -> None:
        super().__init__(
            f"The result {shortened(handle)!r} is not kept any more. Call the tool that it is of again."
        )


class InvalidArgumentsError(McpzipError):
    """Arguments that can't be repaired without guessing what they mean."""


class OverloadedError(McpzipError):
    """Too many computations for clients wait, so this one was not started."""

    def __init__(self) -> None:
        super().__init__("Too much is being looked up already. Nothing was done: try again later.")


class CallRefusedError(McpzipError):
    """The policy of the config, or a person who was asked, doesn't let a call run. Nothing was sent.

    outcome: a word or two for the audit log.
    """

    def __init__(self, sentence: str, outcome: str) -> None:
        self.outcome = outcome
        super().__init__(sentence)


class InsufficientScopeError(McpzipError):
    """Who asks could use what it asks for if its token had more scopes. scopes: that it has to have."""

    def __init__(self, scopes: Sequence[str]) -> None:
        self.scopes = tuple(scopes)
        super().__init__(f"The token lacks a scope; this needs: {' '.join(self.scopes)}. Nothing ran.")


class TooManyCallsError(CallRefusedError):
    """Somebody makes more calls than they may. retry_after: seconds."""

    def __init__(self, most: str, retry_after: float) -> None:
        """most: what they may."""
        self.retry_after = retry_after
        sentence = f"You may make {most} of this. Nothing ran: try again in {retry_after:g} s."
        super().__init__(sentence, "rate limited")


class NotCountedError(CallRefusedError):
    """A call has to be counted in the store, which can't be used now. retry_after: seconds."""

    def __init__(self, retry_after: float) -> None:
        self.retry_after = retry_after
        sentence = "Calls of this have to be counted, which is not possible now. Nothing ran: try again in "
        super().__init__(f"{sentence}{retry_after:g} s.", "not counted")


class LoginError(McpzipError):
    """Signing in to a server, or out of it, failed."""


StoreFault = Literal["away", "slow", "read-only", "full", "refused", "unreadable"]
_STORE_REMEDIES: Mapping[StoreFault, str] = {
    "away": 'Start it, or correct "store" in the config.',
    "slow": "Try again, or look at what it is busy with.",
    "read-only": 'Let "store" in the config name the server that takes writes.',
    "full": "Give it more room.",
    "refused": 'Correct "store" in the config.',
    "unreadable": 'Correct "keys" of "store" in the config.',
}


class StoreError(McpzipError, OSError):
    """The store that processes share can't be used. A write may have been done all the same.

    It is an OSError too, because whoever keeps something in files or in the store treats both alike.

    fault: what is wrong. found: that in words.
    """

    def __init__(self, place: str, fault: StoreFault, found: str, remedy: str = "") -> None:
        """place: its address without a password. found: what is wrong, as a sentence about it without a full
        stop. remedy: as a sentence; "" for that of the fault.
        """
        self.fault, self.found = fault, found
        super().__init__(f"The store {place}: {found}. {remedy or _STORE_REMEDIES[fault]}")


class UpstreamError(McpzipError):
    """A problem with one upstream server.

    reason: one line. remedy: what the user can do about it, as a sentence, or "".
    """

    def __init__(self, server: str, reason: str, remedy: str = "") -> None:
        self.server, self.reason, self.remedy = server, one_line(redact(reason)), spaced(redact(remedy))
        stop = "" if self.reason.rpartition(". ")[2].startswith((RUN, SIGN_IN_AT)) else "."
        super().__init__(f"{server}: {self.reason}{stop}" + (f" {self.remedy}" if remedy else ""))


RUN = "Run: "
"""A command follows, which the user copies: there is no full stop after it."""
SIGN_IN_AT = "Sign in at "
"""How the remedy of a `LoginNeededError` begins for somebody who signs in on a page."""
NEEDS_LOGIN = "it needs a login"
"""The first words of the reason of a `LoginNeededError`."""


class UpstreamUnavailableError(UpstreamError):
    """There is no connection. Nothing was sent, so nothing ran."""


class LoginNeededError(UpstreamUnavailableError):
    """The user has to sign in to the server first. Nothing ran.

    command: signs in, or is the URL of the page for that. otherwise: an alternative to it, as a sentence, or
    "". lasting: whether the server refuses every request until then.
    """

    def __init__(
        self, server: str, reason: str, command: str, otherwise: str = "", *, lasting: bool = True
    ) -> None:
        self.command, self.lasting = command, lasting
        is_page = command.startswith(("https://", "http://"))
        remedy = f"{SIGN_IN_AT if is_page else RUN}{command}"
        super().__init__(
            server, f"{NEEDS_LOGIN}: {reason}", f"{remedy}. {otherwise}" if otherwise else remedy
        )


class UpstreamTimeoutError(UpstreamError):
    """No response in time. The request was cancelled upstream; a call may have run."""


class UpstreamListError(UpstreamError):
    """A list of the server exceeds a limit and is not used. Listing again soon would not help."""


class UpstreamLostError(UpstreamError):
    """The connection ended during a request.

    may_have_run: False if the request was not sent, so that it can be sent again. exited: whether the process
    of the server has ended.
    """

    def __init__(
        self, server: str, reason: str, *, may_have_run: bool, remedy: str = "", exited: bool = False
    ) -> None:
        self.may_have_run, self.exited = may_have_run, exited
        super().__init__(server, reason, remedy)
