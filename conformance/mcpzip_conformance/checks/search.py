"""Checks of searches. The catalogs are small and plain, so that every ranking should be right."""

import asyncio
import json
from collections.abc import Callable

from mcpzip_fakes.record import Record

from mcpzip_conformance.check import CONTRACT, MAY, MUST, SHOULD, SPEC_2025, check, expect
from mcpzip_conformance.errors import Finding, NotPlayableError
from mcpzip_conformance.player import Player
from mcpzip_conformance.scene import SHOP, Server, server, tool
from mcpzip_conformance.stage import Stage

SEARCH = ("search", "several-servers")

_ROWS = {
    "slack": {
        "send_message": "Send a message to a Slack channel or person.",
        "list_channels": "List the channels of the workspace.",
        "delete_message": "Delete a message from a channel.",
        "add_reaction": "React to a message with an emoji.",
    },
    "github": {
        "create_issue": "Open a new issue in a repository.",
        "list_pull_requests": "List the pull requests of a repository.",
        "merge_pull_request": "Merge a pull request into its base branch.",
        "get_file_contents": "Read a file of a repository at a commit.",
    },
    "weather": {
        "get_forecast": "Forecast temperature, rain and wind for a city.",
        "get_alerts": "Current storm and flood warnings of a region.",
    },
}


def catalog() -> list[Server]:
    """Three servers with ten tools."""
    return [
        server(name, tools=[tool(each, {"description": said}) for each, said in tools.items()])
        for name, tools in _ROWS.items()
    ]


async def _listed(stage: Stage) -> Player:
    """A player through the subject, once all tools are listed."""
    player = await stage.through(*catalog())
    await player.ready([(name, each) for name, tools in _ROWS.items() for each in tools])
    return player


@check("search.exact-name", MUST, CONTRACT, needs=SEARCH)
async def exact_name(stage: Stage) -> None:
    """The name of a tool, as a client knows it, finds that tool first."""
    player = await _listed(stage)
    for name, tools in _ROWS.items():
        for each in tools:
            shown = player.route.shown(name, each)
            found = await player.search(shown)
            expect(found[:1] == [shown], f"{shown!r} finds {found[:3]}.")


@check("search.bare-name", SHOULD, CONTRACT, needs=SEARCH)
async def bare_name(stage: Stage) -> None:
    """A tool's own name, without its server's, finds it first."""
    player = await _listed(stage)
    for name, each in (
        ("slack", "add_reaction"),
        ("github", "merge_pull_request"),
        ("weather", "get_alerts"),
    ):
        found = await player.search(each)
        expect(found[:1] == [player.route.shown(name, each)], f"{each!r} finds {found[:3]}.")


@check("search.name-in-words", SHOULD, CONTRACT, needs=SEARCH)
async def name_in_words(stage: Stage) -> None:
    """The words of a name, separated by spaces, find the tool first."""
    player = await _listed(stage)
    for query, name, each in (
        ("create issue", "github", "create_issue"),
        ("list pull requests", "github", "list_pull_requests"),
        ("get forecast", "weather", "get_forecast"),
    ):
        found = await player.search(query)
        expect(found[:1] == [player.route.shown(name, each)], f"{query!r} finds {found[:3]}.")


@check("search.word-order", SHOULD, CONTRACT, needs=SEARCH)
async def word_order(stage: Stage) -> None:
    """The order of the words does not change what comes first."""
    player = await _listed(stage)
    for one, other in (
        ("send slack message", "message slack send"),
        ("merge pull request", "request pull merge"),
    ):
        first, second = await player.search(one), await player.search(other)
        expect(first[:1] == second[:1] != [], f"{one!r} finds {first[:1]}, {other!r} finds {second[:1]}.")


@check("search.verb-decides", SHOULD, CONTRACT, needs=SEARCH)
async def verb_decides(stage: Stage) -> None:
    """Queries that differ in their verb find different tools: deleting a message is not sending one."""
    player = await _listed(stage)
    for verb in ("send", "delete"):
        found = await player.search(f"{verb} slack message")
        wanted = player.route.shown("slack", f"{verb}_message")
        expect(found[:1] == [wanted], f"'{verb} slack message' finds {found[:3]}.")


@check("search.plain-request", SHOULD, CONTRACT, needs=SEARCH)
async def plain_request(stage: Stage) -> None:
    """A request in plain words finds the tool whose description contains them, among the first three."""
    player = await _listed(stage)
    for query, name, each in (
        ("will there be rain and wind in the city tomorrow", "weather", "get_forecast"),
        ("react with an emoji", "slack", "add_reaction"),
        ("read a file at some commit of the repository", "github", "get_file_contents"),
    ):
        found = await player.search(query)
        expect(player.route.shown(name, each) in found[:3], f"{query!r} finds {found[:3]}.")


@check("search.found-can-be-called", MUST, CONTRACT, needs=SEARCH)
async def found_can_be_called(stage: Stage) -> None:
    """A found tool can be called by its name in the reply, and the call reaches its server."""
    player = await _listed(stage)
    shown = {player.route.shown(name, each): (name, each) for name, tools in _ROWS.items() for each in tools}
    found = await player.search("list message repository")
    there = [name for name in found if name in shown]  # a proxy may find tools of its own as well
    expect(there or not found, f"It finds {found}, and no tool is called so.")
    for name in there:
        reply = await player.call(*shown[name], b'{"n":1}')
        expect(reply.json == {"n": 1}, f"A call of {name!r} is answered with {reply.text!r}.")


@check("search.limit", MUST, CONTRACT, needs=(*SEARCH, "search-limit"))
async def limit(stage: Stage) -> None:
    """A limit is respected: no more tools are returned."""
    player = await _listed(stage)
    for number in (1, 2, 3):
        found = await player.search("message", number)
        expect(len(found) <= number, f"Asked for {number}, it finds {len(found)}.")


@check("search.limit-is-a-prefix", SHOULD, CONTRACT, needs=(*SEARCH, "search-limit"))
async def limit_is_a_prefix(stage: Stage) -> None:
    """A smaller limit gives the beginning of the list for a larger one, in any order of the two queries."""
    player = await _listed(stage)
    two, four = await player.search("message channel", 2), await player.search("message channel", 4)
    expect(four[:2] == two, f"With limit 2 it finds {two}, with limit 4 {four}.")


@check("search.no-match", SHOULD, CONTRACT, needs=SEARCH)
async def no_match(stage: Stage) -> None:
    """A query without matches is answered with an explanation, not with an empty text or a failure."""
    player = await _listed(stage)
    reply = await player.search_reply("xylophone qwertzuiop")
    expect(not reply.failed, f"It fails: {reply.text[:200]}")
    expect(len(reply.text.split()) >= 3, f"All it says is {reply.text!r}.")


@check("search.empty-query", SHOULD, CONTRACT, needs=SEARCH)
async def empty_query(stage: Stage) -> None:
    """An empty query is answered with a text."""
    player = await _listed(stage)
    reply = await player.search_reply("")
    expect(len(reply.text.split()) >= 3, f"All it says is {reply.text!r}.")


@check("search.same-again", SHOULD, CONTRACT, needs=SEARCH)
async def same_again(stage: Stage) -> None:
    """A repeated query finds the same tools in the same order."""
    player = await _listed(stage)
    first = await player.search("list of the repository")
    await player.search("slack")
    again = await player.search("list of the repository")
    expect(first == again != [], f"First it finds {first}, then {again}.")


@check("search.dead-server-named", MAY, CONTRACT, needs=SEARCH)
async def dead_server_named(stage: Stage) -> None:
    """A reply says which server could not be searched."""
    dead = server("lighthouse", tools=[tool("blink")], faults=["exit-at-once"])
    player = await stage.through(*catalog(), dead)
    reply = await player.search_reply("send message")
    expect("lighthouse" in reply.text, "The server that is down is not named.")


@check("search.paraphrase", MAY, CONTRACT, needs=SEARCH)
async def paraphrase(stage: Stage) -> None:
    """A request that shares no word with the description finds the tool among the first three, two times out
    of three."""
    player = await _listed(stage)
    asked = (
        ("tell my colleagues that lunch is ready", "slack", "send_message"),
        ("should I take an umbrella", "weather", "get_forecast"),
        ("report a bug", "github", "create_issue"),
    )
    found = {query: await player.search(query) for query, _, _ in asked}
    missed = [query for query, name, each in asked if player.route.shown(name, each) not in found[query][:3]]
    expect(len(missed) <= 1, f"{missed[:1]} finds {[found[query][:3] for query in missed[:1]]}.")


@check("search.limit-too-large", SHOULD, CONTRACT, needs=(*SEARCH, "search-limit"))
async def limit_too_large(stage: Stage) -> None:
    """A limit of a million is answered: with all tools, or with an explanation."""
    player = await _listed(stage)
    reply = await player.search_reply("message", 1_000_000)
    expect(reply.text.strip(), f"It is answered with {reply.result or reply.error!r}.")
    found = await player.search("message", 2)
    expect(found, "After it nothing is found any more.")


_HOSTILE = (
    "message " * 20_000,
    "x" * 100_000,
    "\x00\x01\x1b[31m\u202e\ufeff",
    ".*+?^${}()|[]\\",
    "((((((((((a*)*)*)*)*)*)*)*)*)*b",
    '"unbalanced NEAR( AND OR NOT *:^ -',
    "' OR 1=1; DROP TABLE tools; --",
    "%s%n{0}{name}$HOME`id`../../etc/passwd",
    "\n\r\t \u2028",
    "😀👩‍👩‍👧" * 100,
)


@check("search.hostile-query", MUST, CONTRACT, needs=SEARCH)
async def hostile_query(stage: Stage) -> None:
    """A query may be anything: very long, control characters, the special characters of regular expressions
    and query languages. It is answered, possibly with an error, and so is the next query."""
    player = await _listed(stage)
    for query in _HOSTILE:
        try:
            await player.search_reply(query)
            await player.search_reply("message")
        except Finding as finding:
            raise Finding(f"The query {query[:40]!r} is not survived. {finding.summary}") from finding


@check("search.reply-size", SHOULD, CONTRACT, needs=("search",))
async def reply_size(stage: Stage) -> None:
    """The reply to one search over 40 tools with large schemas is smaller than all their definitions."""
    shop = server("shop", generate={"count": 40, "description": 300, "parameters": 12})
    tools = shop.scenario.all_tools()
    player = await stage.through(shop)
    await player.ready([("shop", tools[-1].name)])
    reply = await player.search_reply("create an invoice")
    expect(player.route.found(reply), f"It finds nothing: {reply.text[:200]!r}.")
    size, whole = len(reply.result or b""), sum(len(each.raw.encode()) for each in tools)
    expect(size < whole, f"The reply has {size} bytes, all definitions together have {whole}.")


_CITIES = ("Graz", "Lagos", "Quito", "Osaka", "Tartu", "Perth", "Turin", "Hanoi")


@check("search.many-servers", SHOULD, CONTRACT, needs=SEARCH)
async def many_servers(stage: Stage) -> None:
    """If eight servers have a tool of the same name, the query finds the right one first."""
    player = await stage.through(
        *(
            server(f"agency{n}", tools=[tool("book_trip", {"description": f"Book a trip to {city}."})])
            for n, city in enumerate(_CITIES)
        )
    )
    for n, city in enumerate(_CITIES):
        found = await player.search(f"book a trip to {city}")
        expect(found[:1] == [player.route.shown(f"agency{n}", "book_trip")], f"{city} finds {found[:3]}.")


CHANGES = ("search", "list-changed")


@check("search.new-tools", SHOULD, SPEC_2025 + "/server/tools#list-changed-notification", needs=CHANGES)
async def new_tools(stage: Stage) -> None:
    """A tool that a server has added, with a notification, is found."""
    late = {"name": "varnish_boat", "description": "Varnish the hull of a boat.", "late": True}
    launch = tool("launch", None, text="done", changes=["tools"])
    player = await stage.through(server(tools=[launch, late]))
    await player.call(SHOP, "launch")
    shown = player.route.shown(SHOP, "varnish_boat")
    await _comes_to(player, "varnish boat", lambda found: found[:1] == [shown], f"{shown!r} isn't found.")


@check("search.gone-tools", SHOULD, SPEC_2025 + "/server/tools#list-changed-notification", needs=CHANGES)
async def gone_tools(stage: Stage) -> None:
    """A tool that a server has removed, with a notification, is no longer found."""
    stays = tool("launch", {"description": "Launch a boat."}, text="done")
    goes = tool("varnish_boat", {"description": "Varnish the hull of a boat."})
    change = {"kind": "list-changed", "tool": "launch"}
    shop = server(tools=[stays, goes], changed_tools=[stays], faults=[change])
    player = await stage.through(shop)
    shown = player.route.shown(SHOP, "varnish_boat")
    await _comes_to(player, "varnish boat", lambda found: shown in found, f"{shown!r} isn't found.")
    await player.call(SHOP, "launch")
    record = stage.record(SHOP)

    def gone(found: list[str]) -> bool:
        if shown in found and _still_listed(record, "varnish_boat"):
            raise NotPlayableError(
                "It lists another process of the server than it calls; there the tool stays."
            )
        return shown not in found

    await _comes_to(player, "varnish boat", gone, f"{shown!r} is found still.")


def _still_listed(record: Record, name: str) -> bool:
    """Whether the server has listed this tool after its notification of a change."""
    sent = record.sent()
    told = [n for n, line in enumerate(sent) if line.method == "notifications/tools/list_changed"]
    later = sent[told[0] :] if told else []
    return any('"tools"' in text and f'"{name}"' in text for text in (json.dumps(it.message) for it in later))


async def _comes_to(player: Player, query: str, wanted: Callable[[list[str]], bool], otherwise: str) -> None:
    """Search for ``query`` until the result is as wanted, because the subject gets the notification of a
    change later."""
    deadline = asyncio.get_running_loop().time() + player.client.patience
    while not wanted(found := await player.search(query)):
        expect(asyncio.get_running_loop().time() < deadline, f"{otherwise} {query!r} finds {found[:3]}.")
        await asyncio.sleep(0.05)
