"""The errors whose text reaches a person or a model.

    McpzipError
    ├── ConfigError            the config file can't be used: file, key path, what was found, what would do
    ├── InvalidToolError       an upstream listed something that isn't a tool
    ├── InvalidOfferError      an upstream listed something that isn't a prompt, a resource or a template
    ├── InvalidCursorError     a cursor that no page ended with
    ├── UnknownToolError       no such tool: the nearest names
    ├── UnknownOfferError      nobody, or more than one server, has it: the names that would do
    │   ├── UnknownPromptError
    │   └── UnknownResourceError
    ├── InvalidArgumentsError  the arguments can't be made to fit without guessing
    ├── CrowdedError           too much is being computed for clients already
    ├── LoginError             nobody could be signed in: why, and what to do
    └── UpstreamError          names its server
        ├── UpstreamUnavailableError   no connection could be made; nothing was sent
        │   └── LoginNeededError       a person has to sign in first
        ├── UpstreamTimeoutError       no answer in time; the request was cancelled upstream
        ├── UpstreamListError          a list is larger than any may be: asked again soon it would be as large
        ├── UpstreamLostError          the connection ended under a request: it may have run
        └── UpstreamRpcError           the upstream answered with a JSON-RPC error: passed on as it is

The rules: an error's text is one sentence (or two) a person can act on, and the last part says what to do.
It is one line of printable characters, whatever is put in it; no secret is in it, whoever said what it
quotes; what an upstream said in it is in quotation marks and cut. An upstream's own JSON-RPC error is passed
on as it came, by its ``code``, ``message``, ``data`` and whatever else it has.

An error that one floor raises for the next (`transport.base.ChannelClosedError`, `wire.NotAnObject`) stands
where it is raised, and becomes one of these on its way up.
"""

from collections.abc import Sequence

from mcpzip.model.limits import ASKED_URI
from mcpzip.model.quoting import names, one_line, quoted, shortened
from mcpzip.model.redaction import redact
from mcpzip.model.sanitize import spaced


class McpzipError(Exception):
    """The root: whoever catches it has a sentence to show."""

    def __init__(self, sentence: str = "") -> None:
        super().__init__(spaced(redact(sentence)))


class ConfigError(McpzipError):
    """The config can't be used.

    file: the path; path: the key path inside it (``mcpServers.slack.url``), or "" for the whole file;
    found: what stands there; remedy: what would do.
    """

    def __init__(self, file: str, path: str, found: str, remedy: str) -> None:
        self.file, self.path, self.found, self.remedy = file, path, found, remedy
        where = f"{file}: {path}" if path else file
        super().__init__(f"{where}: {found}; {remedy}.")


class InvalidToolError(McpzipError):
    """An element of a `tools/list` result that can't be called by any name."""


class InvalidOfferError(McpzipError):
    """An element of a list of prompts, resources or resource templates that can't be asked for."""


class InvalidCursorError(McpzipError):
    """A cursor that no page of this list ended with (spec: server/utilities/pagination, "Error Handling")."""

    def __init__(self) -> None:
        super().__init__("This cursor is none that a page of this list ended with. Begin again without one.")


class UnknownToolError(McpzipError):
    """A name the catalog doesn't have, and the names nearest to it (best first)."""

    def __init__(
        self, name: str, nearest: Sequence[str] = (), otherwise: str = "Find tools with search_tools."
    ) -> None:
        """otherwise: what to do where no name is near."""
        self.name, self.nearest = name, tuple(nearest)
        hint = f"The nearest: {names(self.nearest)}." if self.nearest else otherwise
        super().__init__(f"There is no tool {shortened(name)!r}. {hint}")


class UnknownOfferError(McpzipError):
    """A prompt or a resource that can't be told whose it is.

    name: as it was asked for. nearest: names that can be, best first. several: whether more than one server
    may have it; ``nearest`` then tells them apart.
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
    """A name that leads to no prompt of one server."""

    word = "prompt"


class UnknownResourceError(UnknownOfferError):
    """A URI that leads to no one server."""

    word = "resource"


class InvalidArgumentsError(McpzipError):
    """Arguments that would have to be guessed at."""


class OverloadedError(McpzipError):
    """So much waits to be computed for clients that this was not begun."""

    def __init__(self) -> None:
        super().__init__("Too much is being looked up already. Nothing was done: try again later.")


class LoginError(McpzipError):
    """Signing in to a server, or out of it, did not come about."""


class UpstreamError(McpzipError):
    """Something about one upstream. ``reason`` is one line. ``remedy`` is what its user can do about it, as a
    sentence, or "".
    """

    def __init__(self, server: str, reason: str, remedy: str = "") -> None:
        self.server, self.reason, self.remedy = server, one_line(redact(reason)), spaced(redact(remedy))
        stop = "" if self.reason.rpartition(". ")[2].startswith(RUN) else "."
        super().__init__(f"{server}: {self.reason}{stop}" + (f" {self.remedy}" if remedy else ""))


RUN = "Run: "
"""What follows is a command, to be copied as it stands: no full stop after it."""
NEEDS_LOGIN = "it needs a login"
"""How the reason of a `LoginNeededError` begins."""


class UpstreamUnavailableError(UpstreamError):
    """No connection; nothing was sent, so nothing ran."""


class LoginNeededError(UpstreamUnavailableError):
    """A person has to sign in to the server first. Nothing ran.

    command: the one that does it. otherwise: what would do instead, as a sentence, or "". lasting: whether
    nothing at all can be asked of the server before.
    """

    def __init__(
        self, server: str, reason: str, command: str, otherwise: str = "", *, lasting: bool = True
    ) -> None:
        self.command, self.lasting = command, lasting
        super().__init__(
            server, f"{NEEDS_LOGIN}: {reason}", f"{RUN}{command}. {otherwise}" if otherwise else RUN + command
        )


class UpstreamTimeoutError(UpstreamError):
    """No answer in time. The request was cancelled upstream; a call may have run."""


class UpstreamListError(UpstreamError):
    """A list of the server is over a limit; nothing of it is kept. Asking again soon would bring the same."""


class UpstreamLostError(UpstreamError):
    """The connection ended while a request was under way.

    may_have_run: whether its bytes may have left us. When False nothing ran and the request may be sent
    again.
    """

    def __init__(self, server: str, reason: str, *, may_have_run: bool, remedy: str = "") -> None:
        self.may_have_run = may_have_run
        super().__init__(server, reason, remedy)


class UpstreamRpcError(UpstreamError):
    """The upstream's own JSON-RPC error. ``data`` is its JSON text as received, or None when it had none;
    ``more`` a JSON object of the members that JSON-RPC doesn't know, or None likewise.
    """

    def __init__(
        self, server: str, code: int, message: str, data: bytes | None = None, more: bytes | None = None
    ) -> None:
        self.code, self.message, self.data, self.more = code, message, data, more
        super().__init__(server, f"{quoted(message)} ({code})")
