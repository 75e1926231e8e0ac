"""`mcpzip review`: a person looks at what is held back of servers, and approves or rejects it.

The rule: only a person at a terminal can approve. What is approved is exactly what was shown: if the server
has changed it since, it stays held.
"""

import json
import os
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import SequenceMatcher

import click

from mcpzip.catalog import Catalog, snapshot
from mcpzip.cli import console
from mcpzip.cli.parameters import config_option, examples, hint, json_option, server_names
from mcpzip.cli.proxy_session import unknown_server
from mcpzip.config import Config, config_path, load
from mcpzip.config.paths import find_project, quoted_word
from mcpzip.model.durations import age
from mcpzip.model.errors import McpzipError
from mcpzip.model.names import join
from mcpzip.pins.difference import Difference, differences, visible
from mcpzip.pins.record import Event, counted, kind_and_name
from mcpzip.pins.review import HeldItem, Review, why
from mcpzip.pins.store import PinsUnusableError
from mcpzip.system.terminal import is_interactive

_SHOWN = 4_000
"""Characters of one value that are shown on a terminal."""
_FIELDS = 100
"""Fields of one item that are shown."""
_LINES = 500
"""Lines of a value up to which only the changed ones are shown."""
_NOBODY = "Only a person at a terminal can {}. Run this command in one."


@click.command(
    epilog=examples(
        ("mcpzip review", "look at everything that is held back, and decide"),
        ("mcpzip review github", "only of this server"),
        ("mcpzip review github --approve create_issue", "what you know already"),
        ("mcpzip review github --reject create_issue", "keep it away, and don't ask again"),
        ("mcpzip review --history", "what changed, and who decided"),
        ("mcpzip review --repair", "a new file of pins, if it can't be used"),
    )
)
@click.argument("words", nargs=-1, metavar="[SERVER] [NAME]...", shell_complete=server_names)
@click.option("--approve", is_flag=True, help="Offer the items NAME… from now on.")
@click.option("--reject", is_flag=True, help="Keep the items NAME… held, and don't ask again.")
@click.option("--all", "every", is_flag=True, help="With --approve or --reject: all that are held.")
@click.option("--history", is_flag=True, help="Show what changed so far, and what was decided.")
@click.option("--repair", is_flag=True, help="Pin what is offered now in a new file of pins.")
@json_option
@config_option
def review(
    words: tuple[str, ...],
    approve: bool,
    reject: bool,
    every: bool,
    history: bool,
    repair: bool,
    as_json: bool,
    config: str | None,
) -> int:
    """Look at new and changed items of servers that are held back, and approve or reject them.

    What is held back is absent for agents. Only a person at a terminal can approve it.
    """
    loaded = load(config_path(config, os.environ), os.environ, find_project(os.environ))
    with Review(loaded) as found:
        if repair:
            return _repair(found, loaded)
        return _review(found, loaded, words, approve, reject, every, history, as_json)


def _review(
    found: Review,
    loaded: Config,
    words: tuple[str, ...],
    approve: bool,
    reject: bool,
    every: bool,
    history: bool,
    as_json: bool,
) -> int:
    try:
        servers, names = _selection(found, loaded, words, decided=approve or reject)
        if history:
            return _history(found.events(servers), as_json=as_json)
        held = found.held(servers)
    except PinsUnusableError as error:
        raise McpzipError(_unusable(error)) from error
    if approve or reject:
        if approve == reject:
            raise McpzipError("Name either --approve or --reject.")
        return _decide(found, _named(held, names, every=every, approve=approve), approve=approve)
    if as_json:
        console.data([_as_json(item) for item in held])
        return 0
    if problem := found.write_problem():
        console.warn(problem)
    return _look(found, held)


def _unusable(error: PinsUnusableError) -> str:
    if not error.repairable:
        return f"{error}. Until then nothing new or changed of a server is offered."
    repair = hint("review", "--repair")
    remedy = (
        f"Use that version; or begin anew with what is offered now: {repair}"
        if error.later
        else f"To pin what is offered now: {repair}"
    )
    return f"{error}. Until then nothing new or changed of a server is offered. {remedy}"


def _selection(
    found: Review, config: Config, words: Sequence[str], *, decided: bool
) -> tuple[list[str], list[str]]:
    """The servers, and the names of items, that ``words`` mean. Raises McpzipError."""
    if words and words[0] in config.servers:
        if len(words) > 1 and not decided:
            raise McpzipError("Names of items go with --approve or --reject.")
        return [words[0]], list(words[1:])
    if words and not decided:
        error = unknown_server(words[0], config.servers, config.path)
        there = [_in_folder(folder, words[0]) for folder in found.projects(words[0])]
        raise McpzipError(f"{error} A project has one: {'; '.join(there)}") if there else error
    return sorted(config.servers), list(words)


def _named(held: Sequence[HeldItem], names: Sequence[str], *, every: bool, approve: bool) -> list[HeldItem]:
    """Those of ``held`` that ``names`` mean, each of which means one. Raises McpzipError."""
    if every and not names:
        if not held:
            raise McpzipError("Nothing is held back.")
        return list(held)
    if not names:
        raise McpzipError(f"Name the items, or write --all. To look at them: {hint('review')}")
    found: dict[tuple[str, str], HeldItem] = {}
    for name in names:
        keys = [each for each in held if name == each.key]
        spellings = keys or [each for each in held if name in (each.name, join(each.server, each.name))]
        if not spellings:
            known = ", ".join(visible(each.name)[:60] for each in held[:10]) or "nothing"
            raise McpzipError(f"No item {name!r} is held back. Held: {known}.")
        if len(spellings) > 1:
            option = "--approve" if approve else "--reject"
            which = "; ".join(hint("review", each.server, option, each.key) for each in spellings[:10])
            raise McpzipError(f"{len(spellings)} held items are called {name!r}. Say which one: {which}")
        found.update({(each.server, each.key): each for each in spellings})
    return list(found.values())


# --- decisions ----------------------------------------------------------------------------------------------


def _decide(found: Review, items: Sequence[HeldItem], *, approve: bool) -> int:
    if approve:
        for item in items:
            _show(item)
        if not is_interactive(sys.stdin.fileno()):
            console.warn(_NOBODY.format("approve"))
            return 1
    return _apply(found, items, approve=approve)


def _apply(found: Review, items: Sequence[HeldItem], *, approve: bool) -> int:
    try:
        late = found.approve(items) if approve else found.reject(items)
    except OSError as error:
        raise McpzipError(f"{found.place} can't be written: {why(error)}.") from error
    for item in items:
        if item in late:
            console.warn(f"{_title(item)} has changed since it was shown, and stays held: {hint('review')}")
        elif approve:
            soon = "within seconds, on all machines" if found.shared else "within a second"
            console.say(f"Approved {_title(item)} ({item.fingerprint}). Agents see it {soon}.")
        else:
            console.say(f"Rejected {_title(item)} ({item.fingerprint}). It stays away.")
    return 1 if late else 0


def _in_folder(folder: str, *words: str) -> str:
    """The command that reviews the servers of the project in ``folder``."""
    return f"cd {quoted_word(folder)} && {hint('review', *words)}"


def _look(found: Review, held: Sequence[HeldItem]) -> int:
    waiting = [item for item in held if not item.hold.rejected]
    if found.shared:
        console.note(f"The pins are in {found.place}, for all machines that use it.")
    for folder in found.projects():
        console.note(f"Something of a project's servers is held back too: {_in_folder(folder)}")
    if not waiting:
        rejected = f" Rejected earlier: {_counted(held)}." if held else ""
        console.say(f"Nothing is held back.{rejected}")
        return 0
    console.say(f"{_counted(waiting)} held back.")
    asks = is_interactive(sys.stdin.fileno())
    code = 0
    for item in waiting:
        _show(item)
        while asks:
            answer = click.prompt(
                "Approve it (a), reject it (r), open it in your editor (e), leave it (Enter), stop (q)?",
                default="",
                show_default=False,
                err=True,
            )
            match answer.strip().lower()[:1]:
                case "a":
                    code |= _apply(found, [item], approve=True)
                case "r":
                    code |= _apply(found, [item], approve=False)
                case "e":
                    _edit(item)
                    continue
                case "q":
                    return code
            break
    if not asks:
        console.say("\nTo decide, run this command at a terminal.")
    return code


def _repair(found: Review, config: Config) -> int:
    catalog, warnings = snapshot.load_for(config)
    for warning in warnings:
        console.warn(warning)
    try:
        servers = found.to_repair(catalog)
    except PinsUnusableError as error:
        raise McpzipError(_unusable(error)) from error
    if found.shared and not servers:
        console.say(f"All pins in {found.place} can be used. Nothing was changed.")
        return 0
    offered = [f"{name}: {_tools(catalog, name)}" for name in servers]
    what = (
        f"New pins in {found.place}, for all machines, are" if found.shared else f"A new {found.place} pins"
    )
    console.say(f"{what} what is offered now: {'; '.join(offered) or 'nothing'}.")
    if not is_interactive(sys.stdin.fileno()):
        console.warn(_NOBODY.format("do that"))
        return 1
    if not click.confirm("Write it?", err=True):
        console.say("Nothing was changed.")
        return 1
    try:
        backup = found.repair(catalog)
    except OSError as error:
        raise McpzipError(f"{found.place} can't be written: {why(error)}.") from error
    kept = f" The earlier file is {backup}." if backup else ""
    console.say(f"Written.{kept} What was held is examined when its server is listed: {hint('refresh')}")
    return 0


def _tools(catalog: Catalog, server: str) -> str:
    record = catalog.servers.get(server)
    return "nothing" if record is None else f"{len(record.entries):,} tools"


# --- showing ------------------------------------------------------------------------------------------------


def _show(item: HeldItem) -> None:
    """Shows the item field by field, with what differs from the approved one."""
    state = "rejected" if item.hold.rejected else "held"
    title = f"{_title(item)} ({item.fingerprint}), {state} for {age(time.time() - item.hold.at)}"
    console.say(f"\n{title}", "bold")
    for reason in item.hold.reasons:
        console.say(f"  {visible(reason)}", "yellow")
    if item.after is None:
        console.say(
            f"  Its text is not stored. List the server again: {hint('refresh', item.server)}", "yellow"
        )
        return
    if item.before is None:
        console.say("  There is no approved one to compare it with.", "dim")
    found = differences(item.before, item.after)
    for difference in found[:_FIELDS]:
        console.say(f"  {_cut(difference.path, 300)}")
        for sign, line in _lines(difference):
            style = {"+": "green", "-": "red"}.get(sign, "dim")
            console.say(f"    {sign} {line}", style)
    if len(found) > _FIELDS:
        console.say(f"  and {len(found) - _FIELDS:,} more fields: {hint('review', '--json')}", "dim")


def _lines(difference: Difference) -> Iterator[tuple[str, str]]:
    """The lines of a value, each with a sign: ``-`` for an earlier one, ``+`` for a new one."""
    before, after = (
        [] if text is None else _cut(text, _SHOWN).split("\n")
        for text in (difference.before, difference.after)
    )
    if max(len(before), len(after)) > _LINES or not before or not after:
        yield from (("-", line) for line in before)
        yield from (("+", line) for line in after)
        return
    for tag, start, end, new_start, new_end in SequenceMatcher(None, before, after).get_opcodes():
        if tag == "equal":
            yield from (("…", f"{end - start} equal lines") for _ in range(1))
            continue
        yield from (("-", line) for line in before[start:end])
        yield from (("+", line) for line in after[new_start:new_end])


def _cut(text: str, most: int) -> str:
    left = len(text) - most
    return f"{text[:most]}… ({left:,} more characters: {hint('review', '--json')})" if left > 0 else text


def _title(item: HeldItem) -> str:
    name = visible(item.name).replace("\n", "<U+000A>")[:200]
    return (
        f"{item.server}: {item.kind}"
        if item.kind in ("server", "instructions")
        else f"{item.server}: {item.kind} {name}"
    )


def _counted(items: Iterable[HeldItem]) -> str:
    return counted([item.key for item in items]).capitalize()


def _edit(item: HeldItem) -> None:
    """Opens the item in the editor of the person ($VISUAL, $EDITOR). What is changed there has no effect."""
    lines = [
        f"{_title(item)} ({item.fingerprint})",
        *(f"  {visible(each)}" for each in item.hold.reasons),
        "",
    ]
    for difference in differences(item.before, item.after):
        lines.append(difference.path)
        for sign, text in (("-", difference.before), ("+", difference.after)):
            if text is not None:
                lines += [f"  {sign} {line}" for line in text.split("\n")]
    click.edit("\n".join(lines) + "\n", extension=".txt", require_save=False)


def _as_json(item: HeldItem) -> dict[str, object]:
    return {
        "server": item.server,
        "kind": item.kind,
        "name": kind_and_name(item.key)[1],
        "since": item.hold.at,
        "reasons": list(item.hold.reasons),
        "rejected": item.hold.rejected,
        "sha256": item.hold.digest.hex(),
        "approved": _value(item.before),
        "held": _value(item.after),
        "differences": [
            {"path": each.path, "before": each.before, "after": each.after}
            for each in differences(item.before, item.after)
        ],
    }


def _value(text: bytes | None) -> object:
    if text is None:
        return None
    try:
        value: object = json.loads(text)
        return value
    except (ValueError, RecursionError):
        return text.decode("utf-8", "replace")


def _history(events: Collection[tuple[str, Event]], *, as_json: bool) -> int:
    if as_json:
        console.data([_event_json(server, event) for server, event in events])
        return 0
    if not events:
        console.say("Nothing was listed yet.")
    for server, event in events:
        at = time.strftime("%Y-%m-%d %H:%M", time.localtime(event.at))
        kind, name = kind_and_name(event.item) if event.item else ("", "")
        what = " ".join(filter(None, (event.what, kind, visible(name).replace("\n", " ")[:200])))
        after = f" ({event.after.hex()[:8]})" if event.after else ""
        note = f": {visible(event.note)}" if event.note else ""
        console.say(f"{at}  {server}: {what}{after}{note}")
    return 0


def _event_json(server: str, event: Event) -> dict[str, object]:
    kind, name = kind_and_name(event.item) if event.item else (None, None)
    return {
        "at": event.at,
        "server": server,
        "what": event.what,
        "kind": kind,
        "name": name,
        "note": event.note,
        "before": event.before.hex(),
        "after": event.after.hex(),
    }
