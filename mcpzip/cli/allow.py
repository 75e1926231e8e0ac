"""`mcpzip allow`: a person allows calls about which the policy asks.

The rule: only a person at a terminal can say yes, as with `mcpzip trust`. An agent that runs this command
without one, as agents do, is refused, and there is no option that says yes.
"""

import asyncio
import json
import os
import sys
import time

import click

from mcpzip.catalog import snapshot
from mcpzip.cli import console
from mcpzip.cli.parameters import config_option, examples, hint, json_option, tool_names
from mcpzip.cli.proxy_session import find_tool, proxy_with
from mcpzip.config import Config, config_path, load
from mcpzip.config.paths import find_project
from mcpzip.model.durations import age, seconds_of
from mcpzip.model.entry import Entry
from mcpzip.model.errors import InvalidArgumentsError, McpzipError
from mcpzip.policy.allowances import LONGEST, Allowance, Allowances
from mcpzip.policy.allowing import allow_once, allowable, check_unchanged
from mcpzip.policy.flows import Flows
from mcpzip.policy.hashes import arguments_hash, definition_hash
from mcpzip.policy.opening import open_allowances
from mcpzip.policy.question import shown_arguments
from mcpzip.policy.refused import RefusedCall, refused_calls
from mcpzip.system.terminal import is_interactive
from mcpzip.wire import NotAnObject, split_object

USUAL = "1h"
"""How long without --for."""


@click.command(
    epilog=examples(
        ("mcpzip allow github__merge_pull_request --for 1h", "every call, for an hour"),
        ("mcpzip allow --call 7f3a09c2e1b4", "one call, once: a refused call's answer names it"),
        ('mcpzip allow mail__send --args \'{"to": "ann@example.com"}\'', "only with these arguments"),
        ("mcpzip allow --list", "what is allowed now"),
        ("mcpzip allow --revoke mail__send", "no longer"),
        ("mcpzip allow --clear", "nothing any longer, and a new list if it can't be used"),
    )
)
@click.argument("name", required=False, metavar="[TOOL]", shell_complete=tool_names)
@click.option(
    "--for", "duration", metavar="TIME", default=USUAL, show_default=True, help="Such as 90s, 30m, 2d."
)
@click.option("--args", "arguments", metavar="JSON", help="Only calls with these arguments.")
@click.option("--call", "call_id", metavar="ID", help="Only the call that was refused with this id, once.")
@click.option("--list", "listed", is_flag=True, help="Show what is allowed.")
@click.option(
    "--revoke", "revoked", metavar="TOOL", shell_complete=tool_names, help="Allow this tool no longer."
)
@click.option("--clear", is_flag=True, help="Allow nothing any longer: begin a new list.")
@json_option
@config_option
def allow(
    name: str | None,
    duration: str,
    arguments: str | None,
    call_id: str | None,
    listed: bool,
    revoked: str | None,
    clear: bool,
    as_json: bool,
    config: str | None,
) -> int:
    """Allow calls of a tool about which the config's policy asks a person, for a while.

    It counts at once, for every agent, until the time is over or the server changes the tool. Only a person
    at a terminal can allow. What the policy denies, only an edit of the config allows.
    """
    path, now = config_path(config, os.environ), time.time()
    loaded = load(path, os.environ, find_project(os.environ))
    if clear or listed or revoked is not None:
        with open_allowances(loaded) as allowances:
            if clear:
                allowances.clear()
                console.say("Nothing is allowed besides what the policy allows.")
                return 0
            return _list(allowances, now, as_json) if revoked is None else _revoke(allowances, revoked, now)
    refused = None if call_id is None else _refused(path, call_id, name, now)
    if refused is not None:
        if arguments is not None:
            raise click.UsageError("--call has its arguments already.")
        name, arguments = refused.name, refused.arguments
    if name is None:
        raise click.UsageError(f"Name a tool, as {hint('search')} shows it, or say --list.")
    entry = _tool(loaded, name)
    name = entry.name
    verdict = allowable(loaded, entry)
    if verdict.decision == "allow" and not Flows(loaded.policy.flows).may_ask(entry, verdict.risk):
        console.say(f"The policy allows every call of {name} already.")
        return 0
    seconds = _seconds(duration)
    raw = None if arguments is None else _object(arguments)
    console.say(f"{name}: {verdict.risk.words}", "bold")
    console.say(f"  {entry.description or 'its server says nothing about it'}")
    if refused is None:
        console.say(
            f"  for {age(seconds)}, {'with any arguments' if raw is None else f'only with {arguments}'}"
        )
    else:
        check_unchanged(entry, refused)
        console.say(f"  once, within {age(seconds)}, with exactly these arguments:")
        console.say(shown_arguments(refused.arguments.encode()))
    if not is_interactive(sys.stdin.fileno()):
        console.warn("Only a person at a terminal can allow it. Run this command in one.")
        return 1
    question = "May every agent call it?" if refused is None else "May this call run once?"
    if not click.confirm(question, err=True):
        console.say("Nothing was changed: it is not allowed.")
        return 1
    if refused is not None:
        allow_once(loaded, entry, refused, now, seconds)
        console.say(f"Allowed once, within {age(seconds)}: it has to be called again.")
        return 0
    hashed = "" if raw is None else arguments_hash(raw)
    with open_allowances(loaded) as allowances:
        allowances.allow(Allowance(name, now + seconds, now, definition_hash(entry), hashed))
    console.say(f"Allowed for {age(seconds)}. To take that back: {hint('allow', '--revoke', name)}")
    return 0


def _refused(path: str, call_id: str, name: str | None, now: float) -> RefusedCall:
    """The refused call with this id. name: of its tool, if one was given. Raises McpzipError."""
    for each in reversed(refused_calls(path, now)):
        if each.id == call_id.strip().lower() and name in (None, each.name):
            return each
    raise McpzipError(
        f"No call {call_id!r} was refused within the last hour. The answer of a refused call names its id."
    )


def _tool(loaded: Config, name: str) -> Entry:
    """The tool called ``name``, from the snapshot, else from its server. Raises UnknownToolError."""
    catalog, _ = snapshot.load_for(loaded)
    return catalog.get(name) or asyncio.run(_asked_for(loaded, name))


async def _asked_for(loaded: Config, name: str) -> Entry:
    async with proxy_with(loaded) as proxy:
        return await find_tool(proxy, name)


def _seconds(duration: str) -> float:
    try:
        seconds = seconds_of(duration)
    except ValueError:
        raise McpzipError(f"{duration!r} is no time: write for example 90s, 30m, 1h or 2d.") from None
    if not 0 < seconds <= LONGEST:
        raise McpzipError(f"{duration!r} is too long: 30d at most. For good: the policy in the config.")
    return seconds


def _object(arguments: str) -> bytes:
    text = arguments.strip().encode("utf-8", "surrogateescape")
    try:
        json.loads(text)
        split_object(text)
    except (NotAnObject, ValueError, RecursionError) as error:
        raise InvalidArgumentsError(
            f"--args is not a JSON object ({error}); quote it for your shell."
        ) from error
    return text


def _revoke(allowances: Allowances, name: str, now: float) -> int:
    gone = allowances.revoke(name, now)
    console.say(f"{name} is allowed no longer." if gone else f"{name} was not allowed.")
    return 0 if gone else 1


def _list(allowances: Allowances, now: float, as_json: bool) -> int:
    found = allowances.all(now)
    if as_json:
        console.data(
            [
                {
                    "name": each.name,
                    "until": each.until,
                    "at": each.at,
                    "arguments_sha256": each.arguments or None,
                    "once": each.once,
                }
                for each in found
            ]
        )
        return 0
    if not found:
        console.say("Nothing is allowed besides what the policy allows.")
        return 0
    table = console.Table("tool", ">ends in", "arguments")
    for each in found:
        table.row(
            each.name,
            age(each.until - now),
            "once, " * each.once + (f"sha256 {each.arguments[:12]}…" if each.arguments else "any"),
        )
    table.show()
    return 0
