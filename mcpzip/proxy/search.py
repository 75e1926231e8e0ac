"""`search_tools`: the reply a model reads (pure).

The rule: one line a tool and one status line within a budget of tokens, never empty-handed: what could not be
searched is named with its reason, and a query that matches nothing says why and what comes nearest. The same
results are the same bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from mcpzip.catalog import Catalog
from mcpzip.config.schema import MAX_TOKENS
from mcpzip.model.durations import age
from mcpzip.model.entry import Entry
from mcpzip.model.errors import InvalidArgumentsError
from mcpzip.model.limits import SERVERS_NAMED
from mcpzip.model.quoting import one_line
from mcpzip.proxy.metatools import MAX_LIMIT, REFRESH, STATUS
from mcpzip.proxy.reply import text_result
from mcpzip.proxy.token_budget import ToolLine, fit_to_budget
from mcpzip.search import Filters, Hit, Results
from mcpzip.search.query import matching_servers, parse_truncated
from mcpzip.search.tiers import LLM, TierAbsence

_REASON_LENGTH = 100
_NEED_LENGTH = 80
_WORD_LENGTH, _LEAST_WORD_LENGTH = 40, 12
_TROUBLES_SHOWN = 4
_WORDS_SHOWN = 6
_ELSEWHERE = 3
"""Other servers with tools as good that are named."""
_MENTIONED = (12, 4, 1)
"""Servers and words that are named where nothing was found: as many as fit."""

_NAMED = 0.9
"""The score from which a tool was found by what it is called (`fusion`): a match, whatever it is made of."""

ADMIN_TOOLS = tuple(
    Entry.parse("mcpzip", raw)
    for raw in (
        b'{"name":"%b","description":"Status of the proxy: its servers, their tools, what is wrong",'
        b'"annotations":{"readOnlyHint":true}}' % STATUS.encode(),
        b'{"name":"%b","description":"Refresh the proxy: list the tools of all servers again",'
        b'"annotations":{"idempotentHint":true}}' % REFRESH.encode(),
    )
)
"""mcpzip's own tools: run through `execute_tool` and found by search under their plain names."""


def shown_name(entry: Entry) -> str:
    """The name to call ``entry`` by."""
    return entry.tool if entry in ADMIN_TOOLS else entry.name


@dataclass(frozen=True, slots=True)
class Question:
    """A `search_tools` request, checked."""

    query: str
    limit: int
    filters: Filters


@dataclass(frozen=True, slots=True)
class Pending:
    """Whose tools will be there in a moment. starting: servers that were never listed and are being listed.
    unindexed: servers that were, whose tools a search doesn't find yet.
    """

    starting: tuple[str, ...] = ()
    unindexed: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        return bool(self.starting or self.unindexed)


_NONE = Pending()


@dataclass(frozen=True, slots=True)
class SearchReport:
    """What a search found, and the state of the servers when it was made. troubles: why the tools of a server
    could not be searched live, by its name.
    """

    results: Results
    catalog: Catalog
    troubles: Mapping[str, str]
    pending: Pending


class _Arguments(msgspec.Struct):
    query: str | None = None
    limit: int | None = None
    server: str | None = None
    read_only: bool | None = None


def read_question(raw: bytes | None, default_limit: int) -> Question:
    """Raises InvalidArgumentsError. A limit out of range is moved into it; one spelled as text is read.

    `read_only: false` is no filter: clients that fill in every parameter say so when they want nothing.
    """
    try:
        arguments = msgspec.json.decode(raw or b"{}", type=_Arguments, strict=False)
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError) as error:
        raise InvalidArgumentsError(f"search_tools can't read its arguments: {error}.") from error
    if arguments.query is None:
        raise InvalidArgumentsError("'query' is missing: say in plain words what you want to do.")
    limit = min(max(arguments.limit or default_limit, 1), MAX_LIMIT)
    return Question(arguments.query, limit, Filters(arguments.server or None, arguments.read_only or None))


def reply(
    question: Question,
    results: Results,
    catalog: Catalog,
    troubles: Mapping[str, str],
    now: float,
    max_tokens: int = MAX_TOKENS,
    pending: Pending = _NONE,
) -> bytes:
    """The result of `search_tools`. troubles: why a server could not be searched live, by name. max_tokens:
    what its text may take, estimated; only the name of the first tool and the status can make it longer.
    pending: whose tools are not among those that were searched.
    """
    troubles = {name: why for name, why in troubles.items() if name not in pending.starting}
    status = _first_fitting(
        (_status(results, catalog, troubles, now, detail, pending) for detail in reversed(range(3))),
        max_tokens // 2,
    )
    room = max_tokens - status.tokens
    if results.hits:
        headings = {need: ToolLine.of(heading(need, quality)) for need, quality in results.needs}
        above = [ToolLine.of(said)] if (said := no_word_known(results, pending=pending)) else []
        used = sum(line.tokens for line in (*above, *headings.values()))
        if used > room // 2:  # the tools matter more
            headings, above, used = {}, [], 0
        lines = [*above, *_grouped(results, fit_to_budget(results.hits, room - used, _own_line), headings)]
    else:
        why = (why_nothing(question, results, catalog, shown, pending) for shown in _MENTIONED)
        lines = [_first_fitting(why, room)]
    text = "\n".join(line.text for line in (*lines, status))
    return text_result(text, meta={"search": details(results) | _not_yet(pending)})


def _not_yet(pending: Pending) -> dict[str, object]:
    named = {"starting": pending.starting, "unindexed": pending.unindexed}
    return {what: list(servers) for what, servers in named.items() if servers}


def details(results: Results) -> dict[str, object]:
    """What people and tests want to know of ``results`` beyond the names (`_meta["mcpzip/search"]`)."""
    found: dict[str, object] = {
        "quality": results.quality,
        "matching": results.matching,
        "searched": results.searched,
        "tiers": list(results.tiers),
    }
    if results.absent:
        found["absent"] = [
            {"tier": each.tier, "method": each.method, "reason": each.reason} for each in results.absent
        ]
    if results.corrected:
        found["corrected"] = [{"written": written, "read": as_read} for written, as_read in results.corrected]
    if results.unknown_words:
        found["unknown"] = list(results.unknown_words)
    if results.elsewhere:
        found["elsewhere"] = list(results.elsewhere)
    if results.needs:
        found["needs"] = [{"need": need, "quality": quality} for need, quality in results.needs]
    found["results"] = [_detail(hit) for hit in results.hits]
    return found


def _detail(hit: Hit) -> dict[str, object]:
    detail: dict[str, object] = {
        "name": shown_name(hit.entry),
        "score": round(hit.score, 4),
        "tier": hit.tier,
        "words": round(hit.words, 4),
    }
    if hit.similarity is not None:
        detail["similarity"] = round(hit.similarity, 4)
    if hit.moved:
        detail["moved"] = {why: round(factor, 4) for why, factor in hit.moved}
    if hit.need:
        detail["need"] = hit.need
    if hit.also:
        detail["also"] = list(hit.also)
    return detail


def _own_line(entry: Entry) -> str | None:
    return f"{entry.tool}: {entry.description}" if entry in ADMIN_TOOLS else None


# --- several needs ------------------------------------------------------------------------------------------


def heading(need: str, quality: str) -> str:
    """What stands above the tools for one of several needs."""
    return f'for "{shortened(need, _NEED_LENGTH)}" ({quality}):'


def _grouped(results: Results, lines: Sequence[ToolLine], headings: Mapping[str, ToolLine]) -> list[ToolLine]:
    """``lines``, those for one need under its heading."""
    if not headings:
        return list(lines)
    of = dict(zip(results.hits, lines, strict=False))
    groups = by_need(results)
    return [line for need in groups for line in (headings[need], *(of[h] for h in groups[need] if h in of))]


def by_need(results: Results) -> dict[str, list[Hit]]:
    """The hits for each need, in the order of the needs."""
    groups: dict[str, list[Hit]] = {need: [] for need, _ in results.needs}
    for hit in results.hits:
        groups.setdefault(hit.need, []).append(hit)
    return groups


# --- nothing ------------------------------------------------------------------------------------------------


def why_nothing(
    question: Question, results: Results, catalog: Catalog, shown: int, pending: Pending = _NONE
) -> str:
    """Why nothing was found, and what comes nearest: sentences. shown: servers and words that are named, at
    most.
    """
    if not catalog.entries and pending.starting:
        count = len(pending.starting)
        return (
            f"There are no tools yet: {count} {'server is' if count == 1 else 'servers are'} still starting. "
            "Search again in a few seconds."
        )
    if not catalog.entries:
        return "There are no tools yet. Call proxy_status through execute_tool to see why."
    nearest = [server for server in results.nearest_servers if server in catalog.servers][:shown]
    if not results.searched and (nothing_left := _nothing_left(question, catalog, shown)):
        servers = nearest or sorted(catalog.servers)
        return f"{nothing_left} {'The nearest' if nearest else 'Servers'}: {_some(servers, shown)}."
    if not question.query.strip():
        return (
            f"The query is empty: say in plain words what you want to do. "
            f"The servers: {_counted(catalog, shown)}."
        )
    said = [no_word_known(results, shown, pending) or f"No tool{_so_far(pending)} matches."]
    if results.nearest_words:
        said.append(f"Nearest words: {', '.join(results.nearest_words[:shown])}.")
    if nearest:
        said.append(f"Nearest servers: {_some(nearest, shown)}.")
    else:
        said.append(f"Servers: {_counted(catalog, shown)}.")
    return " ".join(said)


def _nothing_left(question: Question, catalog: Catalog, shown: int) -> str:
    """What is wrong with the servers that were asked for, if any were."""
    filters = question.filters
    asked = [*parse_truncated(question.query).servers, *([filters.server] if filters.server else [])]
    known = sorted(catalog.servers)
    unknown = [server for server in dict.fromkeys(asked) if not matching_servers(known, server)]
    if unknown:
        return f"There is no server {_words(unknown, shown)}."
    if asked:
        return f"The filters leave no tool of {_words(list(dict.fromkeys(asked)), shown)}."
    return ""


def _so_far(pending: Pending) -> str:
    return " so far" if pending.any else ""


def no_word_known(results: Results, shown: int = _WORDS_SHOWN, pending: Pending = _NONE) -> str:
    """What is to be said of words that led nowhere, where none led anywhere."""
    if results.matching or not results.unknown_words:
        return ""
    return f"No tool{_so_far(pending)} knows {_words(results.unknown_words, shown)}."


# --- the status ---------------------------------------------------------------------------------------------


def _status(
    results: Results,
    catalog: Catalog,
    troubles: Mapping[str, str],
    now: float,
    detail: int,
    pending: Pending,
) -> str:
    """detail: 2 says all, 1 no reasons of servers, 0 no reasons at all."""
    lines = (*_still_coming(pending, detail), *_not_live(catalog, troubles, now, detail))
    return "\n".join([f"-- {account(results, detail)}", *lines])


def _still_coming(pending: Pending, detail: int) -> Iterator[str]:
    for what, servers in (("still starting", pending.starting), ("not indexed yet", pending.unindexed)):
        if servers:
            count = f"{len(servers)} {'server' if len(servers) == 1 else 'servers'}"
            who = _some(sorted(servers), SERVERS_NAMED) if detail == 2 else count
            yield f"-- {what}, their tools are not in this answer: {who}"


def account(results: Results, detail: int = 2) -> str:
    """How many tools were found, by what, how far to trust the first, and who was absent. detail: 0 gives no
    reasons.
    """
    parts = [_count(results)]
    if results.hits:
        parts += ["+".join(results.tiers), results.quality]
    if results.elsewhere:
        parts.append(f"also from {_some(results.elsewhere, _ELSEWHERE if detail else 1)}")
    parts += [_absence(absence, detail) for absence in results.absent]
    if results.corrected and detail:
        pairs = [
            f"{_quoted(wrong, _WORD_LENGTH)} as {_quoted(right, _WORD_LENGTH)}"
            for wrong, right in results.corrected[:_WORDS_SHOWN]
        ]
        parts.append("read " + ", ".join(pairs))
    return " · ".join(filter(None, parts))


def _count(results: Results) -> str:
    """How many tools of how many: those that have words of the query, and those that only mean the like."""
    near = sum(map(is_near, results.hits))
    matches = len(results.hits) - near
    if not near:
        return f"{matches} of {max(matches, results.matching)} matches in {results.searched} tools"
    if not matches and not results.matching:
        return f"{near} nearest in meaning of {results.searched} tools"
    matching = max(matches, results.matching)
    return f"{matches} of {matching} matches and {near} nearest in meaning in {results.searched} tools"


def is_near(hit: Hit) -> bool:
    """Whether a tool was found for what it means alone: it has no word of the query, nor its name."""
    return not hit.matched and hit.score < _NAMED and (hit.tier == LLM or hit.similarity is not None)


def _absence(absence: TierAbsence, detail: int) -> str:
    reason = f": {shortened(absence.reason)}" if detail else ""
    return f"{absence.tier} ({absence.method}) absent{reason}"


def _not_live(catalog: Catalog, troubles: Mapping[str, str], now: float, detail: int) -> Iterator[str]:
    if detail < 2:
        if troubles:
            yield f"-- {len(troubles)} {'server' if len(troubles) == 1 else 'servers'} not live; see {STATUS}"
        return
    for server, why in sorted(troubles.items())[:_TROUBLES_SHOWN]:
        record = catalog.servers.get(server)
        fetched = record.fetched_at if record else None
        known = f"tools of {age(now - fetched)} ago" if fetched else "no tools yet"
        yield f"-- {server} not live ({known}): {shortened(why)}"
    if len(troubles) > _TROUBLES_SHOWN:
        yield f"-- {len(troubles) - _TROUBLES_SHOWN} more servers not live; see {STATUS}"


# --- words --------------------------------------------------------------------------------------------------


def shortened(text: str, most: int = _REASON_LENGTH) -> str:
    """``text`` on one line, cut to ``most`` characters."""
    text = one_line(text[: 20 * most])
    return text if len(text) <= most else text[: most - 1] + "…"


def _first_fitting(texts: Iterator[str], budget: int) -> ToolLine:
    """The first of ``texts`` that takes no more than ``budget`` tokens, else the last."""
    line = ToolLine("", 0)
    for text in texts:
        line = ToolLine.of(text)
        if line.tokens <= budget:
            break
    return line


def _counted(catalog: Catalog, shown: int) -> str:
    return _some(
        [f"{name} ({len(record.entries)})" for name, record in catalog.servers.items() if record.entries],
        shown,
    )


def _words(said: Sequence[str], shown: int) -> str:
    length = _WORD_LENGTH if shown > 1 else _LEAST_WORD_LENGTH
    return _some([_quoted(word, length) for word in said], min(shown, _WORDS_SHOWN))


def _quoted(word: str, length: int) -> str:
    return f"'{shortened(word, length)}'"


def _some(names: Sequence[str], shown: int) -> str:
    return ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if len(names) > shown else "")
