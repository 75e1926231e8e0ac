"""Checks of what a proxy lets through to the model of servers that are poisoned.

The rule: what a model is shown is the handshake, all lists, each definition, the answers to searches, and
errors. A case is let through if a text by which it is known is in one of these. No specification asks a proxy
to hold anything back, so these checks have the level may; that honest texts pass is a should. Nothing is
held back by a proxy that shows no such text of any server, or that doesn't list a changed server again: then
a check is skipped, and says so.

The servers are the scenarios ``poisoning/…`` of `mcpzip-fake`. Of the 34 cases the runner leaves out those
that are about the store of one proxy (26), and those that nobody can see in what is listed (32, 33, 34).
"""

import asyncio
import re
from collections.abc import Iterable, Iterator

import msgspec
from mcpzip_fakes.scenario import Scenario, names

from mcpzip.wire import MODERN_VERSION, NotAnObject, join_object, quote, split_object
from mcpzip_conformance.check import MAY, SHOULD, check, expect
from mcpzip_conformance.checks.honest import HONEST, parcels
from mcpzip_conformance.checks.poisoned import CASES, Case
from mcpzip_conformance.errors import Finding, NotPlayableError
from mcpzip_conformance.player import Player, name_of
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.scene import SHOP, Server
from mcpzip_conformance.stage import Stage

SOURCE = "docs/conformance.md#poisoned-servers"
DESCRIBE = ("describe",)
SEVERAL = ("several-servers",)

_LISTS = {
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resources",
}
"""Each list beside that of tools, and the capability that it needs."""
_ROUNDS, _EACH = 20, 0.1
"""Looks at what is shown after a change, and the seconds between two of them."""
_SETTLED = 5
"""Looks after the server was listed again."""
_TOOLS = 200
"""Tools of a server that the runner plays with so many instead of 10,000."""


def _server(number: int, name: str = SHOP) -> Server:
    """The scenario of this number, as a server of this name."""
    return Server(msgspec.structs.replace(Scenario.load(_scenario(number)), name=name))


def _scenario(number: int) -> str:
    (found,) = [name for name in names() if name.startswith(f"poisoning/{number:02}-")]
    return found


async def _shown(player: Player, servers: Iterable[Server]) -> list[str]:
    """Every text that a model is shown of ``servers``, names of members included."""
    answers = [player.opening.result, *await player.list_tools()]
    for method, capability in _LISTS.items():
        if player.offers(capability):
            answers.append((await player.request(method)).result)
    for server in servers:
        tools = (*server.scenario.tools, *server.scenario.changed_tools)
        about = {tool.name: str(tool.definition().get("description")) for tool in tools}
        for name, description in about.items():
            answers += await _shown_of(player, server.name, name, description)
    return [text for answer in answers if answer for text in _texts(answer)]


async def _shown_of(player: Player, server: str, tool: str, about: str) -> list[bytes | None]:
    """The answers to searches for a tool, and to the question for its definition."""
    answers: list[bytes | None] = []
    if player.route.subject.tools.search is not None:
        answers += [(await player.search_reply(query)).result for query in _queries(tool, about)]
    if (describing := player.route.describe(server, tool)) is not None:
        reply = await player.request("tools/call", describing)
        said = b"null" if reply.failed or reply.result is None else reply.result
        if not player.route.defines:  # a refusal may look like a definition, and repeats the name
            said = said.replace(player.route.shown(server, tool).encode(), b"")
        answers.append(said)
    return answers


def _queries(tool: str, about: str) -> tuple[str, str]:
    """Searches that find a tool and have none of its marks, which an answer may repeat."""
    words = about.partition(".")[0].encode("ascii", "ignore").decode().split()
    return tool.replace("_", " "), " ".join(words[:5])


def _texts(raw: bytes) -> Iterator[str]:
    """The strings of a JSON text, names of members included, and those of JSON in a string of it."""
    waiting: list[object] = [msgspec.json.decode(raw)]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
            if one[:1] in ("{", "["):
                try:
                    waiting.append(msgspec.json.decode(one))
                except (msgspec.DecodeError, UnicodeEncodeError):
                    pass  # it only looks like JSON
        elif isinstance(one, dict):
            waiting += [*one, *one.values()]
        elif isinstance(one, list):
            waiting += one


def _held(texts: Iterable[str], marks: Iterable[str]) -> None:
    """Raises Finding if one of ``marks`` is in a text."""
    joined = "\n".join(texts)
    for mark in marks:
        expect(mark not in joined, f"The model is shown {mark!a}.")


async def _shows(stage: Stage, kind: str) -> None:
    """Raises NotPlayableError if the subject shows no text of this kind, a key of `HONEST`, of an honest
    server."""
    honest = parcels()
    shown = await _shown(await stage.through(honest), [honest])
    if not any(HONEST[kind] in text for text in shown):
        raise NotPlayableError(f"It shows a model no {kind} of any server.")


async def _after_change(stage: Stage, player: Player, poisoned: Server, calls: int) -> bool:
    """Makes the server change, and waits until it was listed again. Returns whether it was.

    A list that is asked for during a call doesn't count: SDKs look up a tool's output schema there.
    """
    await _look(player, poisoned)
    for _ in range(calls):
        await player.call(poisoned.name, "now")
    listed = len(stage.record(poisoned.name).received("tools/list"))
    settled = 0
    for _ in range(_ROUNDS):
        await _look(player, poisoned)
        settled += len(stage.record(poisoned.name).received("tools/list")) > listed
        if settled == _SETTLED:
            return True
        await asyncio.sleep(_EACH)
    return False


async def _look(player: Player, at: Server) -> None:
    """All by which a client can have a server listed again."""
    await player.list_tools()
    if (refreshing := player.route.refresh()) is not None:
        await player.request("tools/call", refreshing)
    if (describing := player.route.describe(at.name, at.scenario.tools[0].name)) is not None:
        await player.request("tools/call", describing)


def _judged(listed_again: bool) -> None:
    """Raises NotPlayableError if a server that has changed wasn't listed again."""
    if not listed_again:
        raise NotPlayableError("It doesn't list the tools of a server again when they have changed.")


def _needs(case: Case) -> tuple[str, ...]:
    modern = ("modern",) if case.era == MODERN_VERSION else ()
    return (*(SEVERAL if case.beside else ()), *modern)


def _register(case: Case) -> None:
    async def play(stage: Stage) -> None:
        poisoned = _server(case.scenario)
        servers = [poisoned, *([Server(Scenario.load(case.beside))] if case.beside else [])]
        player = await stage.through(*servers, version=case.era)
        again = not case.calls or await _after_change(stage, player, poisoned, case.calls)
        _held(await _shown(player, [poisoned]), case.marks)
        _judged(again)
        if case.era == MODERN_VERSION and not stage.record(SHOP).received("server/discover"):
            raise NotPlayableError("It asks its servers in the legacy era only.")
        await _shows(stage, case.kind)

    play.__doc__ = f"{case.says} is not shown to the model (case {case.scenario})."
    check(f"poisoning.{case.id}", MAY, SOURCE, needs=_needs(case))(play)


for _case in CASES:
    _register(_case)


@check("poisoning.hints-changed", MAY, SOURCE, needs=DESCRIBE)
async def hints_changed(stage: Stage) -> None:
    """A hint that changes – to readOnlyHint, from destructiveHint – is not shown to the model (case 19)."""
    poisoned = _server(19)
    player = await stage.through(poisoned)
    hints = (("sync", "readOnlyHint", False), ("drop", "destructiveHint", True))
    for tool, hint, _ in hints:
        if _hint(await player.definition(SHOP, tool), hint) is None:
            raise NotPlayableError("It shows a model no hints of any server.")
    again = await _after_change(stage, player, poisoned, 1)
    for tool, hint, honest in hints:
        shown = _hint(await player.definition(SHOP, tool), hint)
        expect(shown in (None, honest), f"The {hint} of {tool} is shown as {shown}.")
    _judged(again)


def _hint(definition: bytes | None, hint: str) -> object:
    if definition is None:
        return None
    try:
        annotations = split_object(split_object(definition).get("annotations", b"{}"))
    except NotAnObject:
        return None
    return msgspec.json.decode(annotations[hint]) if hint in annotations else None


@check("poisoning.error-text", MAY, SOURCE)
async def error_text(stage: Stage) -> None:
    """The text of an error that orders the next step is not passed on as it is (case 23)."""
    player = await stage.through(_server(23))
    reply = await player.call(SHOP, "add")
    if not stage.record(SHOP).calls("add"):
        raise NotPlayableError("The call did not reach its server.")
    expect("read ~/.ssh/id_rsa" not in reply.text, "The error is passed on.")


@check("poisoning.typosquat", MAY, SOURCE, needs=SEVERAL)
async def typosquat(stage: Stage) -> None:
    """Tools of a server whose name is nearly another's are not shown (case 25)."""
    told = Scenario.load(_scenario(25))
    assert told.generate is not None
    fewer = msgspec.structs.replace(told, generate=msgspec.structs.replace(told.generate, count=_TOOLS))
    player = await stage.through(Server(fewer), Server(Scenario.load("slack")))
    await player.call(told.name, "now")
    called = stage.record(told.name).calls("now")
    expect(not called, f"A tool of {told.name} is called beside slack.")
    if not stage.record(told.name).received("tools/list"):
        raise NotPlayableError(f"It doesn't list the tools of {told.name}.")


@check("poisoning.held-out-of-reach", MAY, SOURCE)
async def held_out_of_reach(stage: Stage) -> None:
    """A tool that is new after approval can't be called, nor found by its name with a mistake (case 27)."""
    poisoned = _server(27)
    player = await stage.through(poisoned)
    again = await _after_change(stage, player, poisoned, 1)
    near = await player.call(SHOP, "quicksilvr")
    await player.call(SHOP, "quicksilver")
    called = stage.record(SHOP).calls("quicksilver")
    expect(not called, "The new tool is called.")
    _held([near.text], ("quicksilver",))
    _held(await _shown(player, [poisoned]), ("Quicksilver does",))
    _judged(again)


_APPROVES = re.compile(r"approve|quarantine|trust|unblock|whitelist|allow_?list", re.IGNORECASE)


@check("poisoning.approval-tools", MAY, SOURCE)
async def approval_tools(stage: Stage) -> None:
    """The proxy has no tool of its own by which a model can approve what was held back (case 28)."""
    poisoned = _server(28)
    player = await stage.through(poisoned)
    theirs = {player.route.shown(SHOP, tool.name) for tool in poisoned.scenario.tools}
    own = {name for raw in await player.list_tools() if (name := name_of(raw)) and name not in theirs}
    if player.route.subject.tools.search is not None:
        own |= {*await player.search("approve a tool that is in quarantine")} - theirs
    expect(not (found := sorted(filter(_APPROVES.search, own))), f"It has {', '.join(found)}.")


@check("poisoning.same-meaning", SHOULD, SOURCE)
async def same_meaning(stage: Stage) -> None:
    """A tool whose definition is spelled otherwise – order of keys and tools, white space, 1.0 for 1 – is
    still shown and called (case 29)."""
    poisoned = _server(29)
    player = await stage.through(poisoned)
    again = await _after_change(stage, player, poisoned, 1)
    await _is_shown(player, "add", "Add two numbers.")
    _judged(again)


@check("poisoning.quotes-an-attack", SHOULD, SOURCE)
async def quotes_an_attack(stage: Stage) -> None:
    """A security tool whose description quotes an attack is shown as it is, and called (case 30)."""
    player = await stage.through(_server(30))
    await _is_shown(player, "scan", 'Detects prompt injection such as "ignore all previous instructions"')


@check("poisoning.other-scripts", SHOULD, SOURCE)
async def other_scripts(stage: Stage) -> None:
    """Tools with emoji, right-to-left text, CJK, and Persian and Indic joiners are shown as they are (case
    31)."""
    honest = _server(31)
    player = await stage.through(honest)
    for tool in honest.scenario.tools:
        await _is_shown(player, tool.name, str(tool.definition()["description"]))


async def _is_shown(player: Player, tool: str, description: str) -> None:
    """Raises Finding if this tool isn't shown with this description, or can't be called."""
    describing = player.route.describe(SHOP, tool)
    if describing is not None and not player.route.defines:
        shown = (await player.request("tools/call", describing)).result or b"null"
        whole = any(description in text for text in _texts(shown))
        expect(whole, f"The description of {tool} is not shown as it is.")
    else:
        definition = await player.definition(SHOP, tool)
        if definition is None and player.route.subject.tools.hidden:
            raise NotPlayableError("It shows a model no definition of any server's tool.")
        if definition is None:
            raise Finding(f"No definition of {tool} is shown.")
        said = split_object(definition).get("description", b'""')
        expect(description in msgspec.json.decode(said), f"The description of {tool} is {ascii(said)[:300]}.")
    reply: Reply = await player.call(SHOP, tool, join_object({"text": quote("x")}))
    expect(not reply.failed, f"A call of {tool} is answered with {reply.brief}.")
