"""What `mcpzip eval` found, for people and programs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mcpzip.cli import console
from mcpzip.cli.eval_changes import Change, Miss
from mcpzip.cli.parameters import hint
from mcpzip.model.entry import Entry
from mcpzip.search.evaluation.lookalikes import SHORT
from mcpzip.search.evaluation.metrics import DEPTH, Outcome, Scores, by_kind, by_server, scores
from mcpzip.search.evaluation.requests import KINDS
from mcpzip.server.token_counter import as_model_reads, token_counter

_KS = (1, 3, 5)
_SERVERS_SHOWN = 10
_NAMES_SHOWN = 8
_MADE = "how they are made"


@dataclass(frozen=True)
class Evaluation:
    """k: lines of a reply that count as found. setting: the name of the one that was evaluated. own: whether
    the user wrote the requests. searched: tools of the catalog; tools: those of the servers asked for; asked:
    those that requests were made of. compared: the outcomes of the same requests with other settings. used:
    the outcomes for tools that were called; uses: their counts. missed: needs whose tool is not found;
    misses: one for each tool, of those that changes were tried for. pinned: tools of ``misses`` that clients
    see without a search. short: tools with too short a description. absent: tiers that gave no answer, and
    how often. unasked: whether the config has a tier that wasn't asked.
    """

    k: int
    setting: str
    own: bool
    searched: int
    tools: int
    asked: int
    outcomes: Sequence[Outcome]
    compared: Mapping[str, Sequence[Outcome]]
    used: Sequence[Outcome]
    uses: Mapping[str, float]
    misses: Sequence[Miss]
    missed: int
    pinned: frozenset[str]
    twins: Sequence[tuple[Entry, ...]]
    confused: Sequence[tuple[str, str]]
    short: Sequence[Entry]
    absent: Mapping[str, int]
    unasked: bool

    @cached_property
    def ks(self) -> tuple[int, ...]:
        """The k of recall@k: `_KS`, and the limit."""
        return tuple(sorted({*_KS, self.k}))

    @cached_property
    def overall(self) -> Scores:
        """The means over all requests."""
        return scores(self.outcomes, self.ks)

    @cached_property
    def of_used(self) -> Scores:
        """The means over the requests for tools that were called, weighted by how often."""
        weights = [max(self.uses.get(tool, 0.0) for tool in one.request.tools) for one in self.used]
        return scores(self.used, self.ks, weights)

    @cached_property
    def kinds(self) -> dict[str, Scores]:
        """The means by kind of request."""
        return {kind: scores(same, self.ks) for kind, same in by_kind(self.outcomes).items()}

    @cached_property
    def servers(self) -> dict[str, Scores]:
        """The means by server, the lowest recall within the limit first."""
        found = {name: scores(same, self.ks) for name, same in by_server(self.outcomes).items()}
        return dict(sorted(found.items(), key=lambda pair: (pair[1].recall[self.k], pair[0])))

    @cached_property
    def settings(self) -> dict[str, Scores]:
        """The means by setting, that which was evaluated first."""
        others = {name: scores(outcomes, self.ks) for name, outcomes in self.compared.items()}
        return {self.setting: self.overall, **others}


# --- for people ---------------------------------------------------------------------------------------------


def show(found: Evaluation, misses: int) -> None:
    """Prints ``found``. misses: tools that are not found, at most."""
    console.say(_introduction(found))
    rows = dict(found.kinds)
    if len(rows) > 1:
        rows["all"] = found.overall
    if found.used:
        rows["tools you use"] = found.of_used
    console.say("")
    _table("requests", rows, found)
    if found.used:
        console.say(
            f"  tools you use: those called through mcpzip, each weighted by its calls ({hint('usage')})."
        )
    if len(found.servers) > 1:
        console.say("")
        lowest = dict(list(found.servers.items())[:_SERVERS_SHOWN])
        what = "server" if len(lowest) == len(found.servers) else f"lowest of {len(found.servers)} servers"
        _table(what, lowest, found)
    if len(found.settings) > 1:
        console.say("")
        _table("tiers", found.settings, found)
    for reason, times in found.absent.items():
        console.note(f"{times:,} of {len(found.outcomes):,} requests were answered without {reason}.")
    if found.unasked:
        console.note(
            f"The config's remote tiers were not asked. To ask them: {hint('eval', '--tiers', 'remote')}"
        )
    _show_alike(found)
    _show_misses(found, misses)


def _introduction(found: Evaluation) -> str:
    requests = _count(len(found.outcomes), "request")
    where = f"searched for among {found.searched:,} tools with {found.setting}"
    if found.own:
        return f"{requests} of yours, {where}."
    which = f"{found.asked:,} tools"
    if found.asked < found.tools:
        which = (
            f"{found.asked:,} of {found.tools:,} tools, chosen by a hash of their names (--all: every tool)"
        )
    return (
        f"{requests} made from the texts of {which}, {where}.\n"
        "They are easier than a person's: compare settings, servers and descriptions by them."
    )


def _table(what: str, rows: Mapping[str, Scores], found: Evaluation) -> None:
    explained = what == "requests" and not found.own
    headings = [what, ">n", *(f">recall@{k}" for k in found.ks), ">MRR"]
    if explained:
        table = console.Table(*headings, _MADE, wide=(_MADE,), optional=(_MADE,))
    else:
        table = console.Table(*headings)
    for name, each in rows.items():
        shares = [f"{each.recall[k]:.3f}" for k in found.ks]
        cells = [name, f"{each.count:,}", *shares, f"{each.mrr:.3f}"]
        table.row(*cells, *([KINDS.get(name, "")] if explained else []))
    table.show()


def _show_alike(found: Evaluation) -> None:
    groups = [", ".join(each.name for each in group) for group in found.twins]
    _list(
        "No request tells these apart: they have the same name and description, but other parameters.", groups
    )
    pairs = [f"{one}, {other}" for one, other in found.confused]
    _list("Nearly the same descriptions; a request for one finds the other first, and the reverse.", pairs)
    _list(f"Descriptions of fewer than {SHORT} words, or none.", [each.name for each in found.short])


def _list(heading: str, lines: Sequence[str]) -> None:
    if lines:
        console.say(f"\n{heading}")
    for line in lines[:_NAMES_SHOWN]:
        console.say(f"  {line}")
    if (more := len(lines) - _NAMES_SHOWN) > 0:
        console.say(f"  and {more:,} more: --json")


def _show_misses(found: Evaluation, most: int) -> None:
    if not found.missed:
        console.say(f"\nEvery tool asked for is among the first {found.k}.")
        return
    tools = "1 tool is" if found.missed == 1 else f"{found.missed:,} tools are"
    console.say(
        f"\n{tools} not among the first {found.k} lines for some request. Changes were tried for "
        f"{len(found.misses):,}, each with its easiest request:"
    )
    _show_summary(found)
    count, unit = token_counter()
    for miss in found.misses[:most]:
        one, tool = miss.outcome, miss.tool
        rank = next(
            (rank for need, rank in zip(one.request.needs, one.ranks, strict=True) if tool.name in need), None
        )
        where = f"line {rank}" if rank else f"not in the first {DEPTH}"
        console.say(f"\n{tool.name}: {where}", "bold")
        console.say(f'  asked, {one.request.kind}: "{one.request.query}"')
        if one.before:
            console.say(f"  before it: {', '.join(one.before)}")
        for sentence in _helps(miss, found):
            console.say(f"  {sentence}")
        if tool.name in found.pinned:
            console.say("  It is shown to clients without a search.")
        else:
            tokens = count(as_model_reads(tool.definition() | {"name": tool.name}))
            console.say(f"  A pin shows it without a search, for {tokens:,} {unit} in every message.")
    if len(found.misses) > most:
        console.say(f"\nMore: --misses {len(found.misses)}, or --json.")


_SUMMARY = {
    "spelling": "spelt right",
    "tier": "with {} alone",
    "description": "if the description began with the words that are missing",
    "first words": "if the description began with the request's words",
    "without": "without tools that are nearly the same",
    "server": "if the request named the server (server:NAME)",
}


def _show_summary(found: Evaluation) -> None:
    """How many of the tried misses each change would make hits."""
    tried = len(found.misses)
    helped: dict[str, int] = {}
    for miss in found.misses:
        for change in miss.changes:
            label = _SUMMARY[change.what].format(change.text)
            helped[label] = helped.get(label, 0) + 1
    table = console.Table("found within the limit", f">of {tried}")
    for label, number in sorted(helped.items(), key=lambda pair: (-pair[1], pair[0])):
        table.row(label, f"{number:,}")
    table.show()


def _helps(miss: Miss, found: Evaluation) -> Iterator[str]:
    if not miss.changes:
        yield "No change that was tried brings it up: not its description, and no other tier."
    for change in miss.changes:
        yield _sentence(change, miss)


def _sentence(change: Change, miss: Miss) -> str:
    match change.what:
        case "spelling":
            return f'Spelt right ("{change.text}"): line {change.rank}.'
        case "tier":
            return f"With {change.text} alone: line {change.rank}."
        case "description" | "first words":
            words = len(miss.tool.description.split())
            now = f" (it has {words} words)" if words < 3 else ""
            return f'If its description{now} began with "{change.text}": line {change.rank}.'
        case "without":
            return f"Without {change.text} (tools.deny), which is nearly the same: line {change.rank}."
        case _:
            return f'If the request had "server:{change.text}": line {change.rank}.'


def _count(number: int, one: str) -> str:
    return f"{number:,} {one if number == 1 else one + 's'}"


# --- for programs -------------------------------------------------------------------------------------------


def as_json(found: Evaluation) -> dict[str, object]:
    """``found`` for programs."""
    return {
        "limit": found.k,
        "setting": found.setting,
        "requests": {"own": found.own, "count": len(found.outcomes)},
        "tools": {"searched": found.searched, "of_servers": found.tools, "asked": found.asked},
        "all": _scores(found.overall),
        "kinds": {kind: _scores(each) for kind, each in found.kinds.items()},
        "servers": {name: _scores(each) for name, each in found.servers.items()},
        "used": _scores(found.of_used) if found.used else None,
        "tiers": {name: _scores(each) for name, each in found.settings.items()},
        "absent": dict(found.absent),
        "same": [[each.name for each in group] for group in found.twins],
        "confused": [list(pair) for pair in found.confused],
        "short_descriptions": [each.name for each in found.short],
        "missed": found.missed,
        "misses": [_miss(each, found) for each in found.misses],
    }


def _scores(each: Scores) -> dict[str, object]:
    recall = {str(k): round(value, 4) for k, value in each.recall.items()}
    return {"count": each.count, "recall": recall, "mrr": round(each.mrr, 4)}


def _miss(miss: Miss, found: Evaluation) -> dict[str, object]:
    one = miss.outcome
    return {
        "tool": miss.tool.name,
        "query": one.request.query,
        "kind": one.request.kind,
        "ranks": list(one.ranks),
        "before": list(one.before),
        "shown_directly": miss.tool.name in found.pinned,
        "changes": [{"what": each.what, "text": each.text, "rank": each.rank} for each in miss.changes],
    }
