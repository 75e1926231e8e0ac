"""Finding a tool. The catalog of these scenes is small and plain: a check asks what any ranking should get
right."""

from conformance.check import CONTRACT, MAY, MUST, SHOULD, check, expect
from conformance.player import Player
from conformance.scene import Server, server, tool
from conformance.stage import Stage

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
    """Through the subject, every tool there."""
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
    """The words of a name, written as words, find the tool first."""
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
    """Queries that differ in their verb find different tools: to delete a message is not to send one."""
    player = await _listed(stage)
    for verb in ("send", "delete"):
        found = await player.search(f"{verb} slack message")
        wanted = player.route.shown("slack", f"{verb}_message")
        expect(found[:1] == [wanted], f"'{verb} slack message' finds {found[:3]}.")


@check("search.plain-request", SHOULD, CONTRACT, needs=SEARCH)
async def plain_request(stage: Stage) -> None:
    """A request in plain words finds the tool whose description holds them, among the first three."""
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
    """What is found can be called under the name it is found by, and on the server it belongs to."""
    player = await _listed(stage)
    shown = {player.route.shown(name, each): (name, each) for name, tools in _ROWS.items() for each in tools}
    for found in await player.search("list message repository"):
        if found in shown:
            reply = await player.call(*shown[found], b'{"n":1}')
            expect(reply.json == {"n": 1}, f"A call of {found!r} is answered with {reply.text!r}.")


@check("search.limit", MUST, CONTRACT, needs=(*SEARCH, "search-limit"))
async def limit(stage: Stage) -> None:
    """A limit is kept: no more than so many tools are found."""
    player = await _listed(stage)
    for number in (1, 2, 3):
        found = await player.search("message", number)
        expect(0 < len(found) <= number, f"Asked for {number}, it finds {len(found)}.")


@check("search.limit-is-a-prefix", SHOULD, CONTRACT, needs=(*SEARCH, "search-limit"))
async def limit_is_a_prefix(stage: Stage) -> None:
    """A smaller limit gives the beginning of what a larger one gives, whichever is asked for first."""
    player = await _listed(stage)
    two, four = await player.search("message channel", 2), await player.search("message channel", 4)
    expect(four[:2] == two, f"With limit 2 it finds {two}, with limit 4 {four}.")


@check("search.no-match", SHOULD, CONTRACT, needs=SEARCH)
async def no_match(stage: Stage) -> None:
    """A query that nothing matches is answered in words, not with silence or a failure."""
    player = await _listed(stage)
    reply = await player.search_reply("xylophone qwertzuiop")
    expect(not reply.failed, f"It fails: {reply.text[:200]}")
    expect(len(reply.text.split()) >= 3, f"All it says is {reply.text!r}.")


@check("search.empty-query", SHOULD, CONTRACT, needs=SEARCH)
async def empty_query(stage: Stage) -> None:
    """An empty query is answered in words."""
    player = await _listed(stage)
    reply = await player.search_reply("")
    expect(len(reply.text.split()) >= 3, f"All it says is {reply.text!r}.")


@check("search.same-again", SHOULD, CONTRACT, needs=SEARCH)
async def same_again(stage: Stage) -> None:
    """The same query finds the same tools in the same order."""
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
