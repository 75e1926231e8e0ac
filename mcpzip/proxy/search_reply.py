"""The result of `search_tools`: the text that the model reads, and its details in ``_meta`` (pure).

The rule: one line a tool and a status, within a budget of tokens. Servers and tiers that could not be
searched are listed with the reason; if no tool matches, the text says why and lists the nearest words and
servers. Equal results are equal bytes.
"""

from collections.abc import Container, Iterator, Mapping, Sequence

from mcpzip.catalog import Catalog
from mcpzip.config.paths import mcpzip_command
from mcpzip.config.schema import MAX_TOKENS
from mcpzip.model.durations import age
from mcpzip.model.entry import Entry
from mcpzip.model.limits import SERVERS_NAMED
from mcpzip.model.quoting import one_line
from mcpzip.proxy.admin_tools import ADMIN_TOOLS
from mcpzip.proxy.metatools import STATUS
from mcpzip.proxy.search_request import NONE_PENDING, PendingServers, SearchReport, SearchRequest
from mcpzip.proxy.token_budget import ToolLine, fit_to_budget
from mcpzip.proxy.tool_result import text_result
from mcpzip.search import Hit, Results
from mcpzip.search.query import matching_servers, parse_truncated
from mcpzip.search.tiers import LLM, TierAbsence

_REASON_LENGTH = 100
_NEED_LENGTH = 80
_WORD_LENGTH, _MIN_WORD_LENGTH = 40, 12
_UNAVAILABLE_SHOWN = 4
_WORDS_SHOWN = 6
_OTHER_SERVERS_SHOWN = 3
"""Other servers with equally good tools that are listed."""
_NEAREST_SHOWN = (12, 4, 1)
"""Servers and words listed if no tool matches: the first number with which the text fits the budget."""

_NO_FIT = "no tool fits well"
_NAME_MATCH = 0.9
"""The score from which on a tool matched by its name (`search.fusion`), and so is a match even if no word of
the query is in its texts."""


def shown_name(entry: Entry) -> str:
    """The name to call ``entry`` by."""
    return entry.tool if entry in ADMIN_TOOLS else entry.name


def search_result(
    request: SearchRequest,
    report: SearchReport,
    now: float,
    max_tokens: int = MAX_TOKENS,
    *,
    details: bool = False,
    reads: Container[Entry] = (),
) -> bytes:
    """The `CallToolResult` (JSON text) of `search_tools`.

    now: Unix seconds. max_tokens: of the text, estimated; the name of the first tool and the status are shown
    even if they exceed it. details: whether `_meta` has `search_details`, which some clients show to models.
    reads: the tools that are marked as read-only.
    """
    results, catalog, pending = report.results, report.catalog, report.pending
    unavailable = {name: why for name, why in report.unavailable.items() if name not in pending.starting}
    status = _first_fitting(
        (
            "\n".join((_status(results, catalog, unavailable, now, detail, pending), *held_lines(report)))
            for detail in reversed(range(3))
        ),
        max_tokens // 2,
    )
    budget = max_tokens - status.tokens
    if results.hits:
        headings = {need: ToolLine.of(heading(need, quality)) for need, quality in results.needs}
        above = [ToolLine.of(text)] if (text := unknown_words_text(results, pending=pending)) else []
        used = sum(line.tokens for line in (*above, *headings.values()))
        if used > budget // 2:  # the tools matter more than the headings
            headings, above, used = {}, [], 0
        lines = [
            *above,
            *_grouped(results, fit_to_budget(results.hits, budget - used, _admin_line, reads), headings),
        ]
    else:
        texts = (no_hits_text(request, results, catalog, shown, pending) for shown in _NEAREST_SHOWN)
        lines = [_first_fitting(texts, budget)]
    text = "\n".join(line.text for line in (*lines, status))
    return text_result(text, meta={"search": search_details(results, pending)} if details else None)


def search_details(results: Results, pending: PendingServers = NONE_PENDING) -> dict[str, object]:
    """Scores, tiers and corrections of ``results``, and the ``pending`` servers, as JSON values: for
    `_meta["mcpzip/search"]` and `mcpzip search --json`.
    """
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
    if pending.starting:
        found["starting"] = list(pending.starting)
    if pending.unindexed:
        found["unindexed"] = list(pending.unindexed)
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
    if hit.learned:
        detail["learned"] = round(hit.learned, 4)
    if hit.need:
        detail["need"] = hit.need
    if hit.also:
        detail["also"] = list(hit.also)
    return detail


def _admin_line(entry: Entry) -> str | None:
    """The line of one of mcpzip's own tools; None for any other."""
    return f"{entry.tool}: {entry.description}" if entry in ADMIN_TOOLS else None


# --- several needs ------------------------------------------------------------------------------------------


def heading(need: str, quality: str) -> str:
    """The line above the tools for one of several needs (parts of a query)."""
    return f'for "{shortened(need, _NEED_LENGTH)}" ({quality}):'


def _grouped(results: Results, lines: Sequence[ToolLine], headings: Mapping[str, ToolLine]) -> list[ToolLine]:
    """``lines`` (of the hits in order), grouped by need under ``headings``."""
    if not headings:
        return list(lines)
    line_of = dict(zip(results.hits, lines, strict=False))
    grouped: list[ToolLine] = []
    for need, hits in by_need(results).items():
        grouped += headings[need], *(line_of[hit] for hit in hits if hit in line_of)
    return grouped


def by_need(results: Results) -> dict[str, list[Hit]]:
    """The hits for each need, in the order of the needs."""
    groups: dict[str, list[Hit]] = {need: [] for need, _ in results.needs}
    for hit in results.hits:
        groups.setdefault(hit.need, []).append(hit)
    return groups


# --- no hits ------------------------------------------------------------------------------------------------


def no_hits_text(
    request: SearchRequest,
    results: Results,
    catalog: Catalog,
    shown: int,
    pending: PendingServers = NONE_PENDING,
) -> str:
    """Sentences that say why no tool was found, and list the nearest words and servers. shown: how many of
    each are listed at most.
    """
    if not len(catalog) and pending.starting:
        count = len(pending.starting)
        return (
            f"There are no tools yet: {count} {'server is' if count == 1 else 'servers are'} still starting. "
            "Search again in a few seconds."
        )
    if not len(catalog):
        return "There are no tools yet. Call proxy_status to see why."
    nearest = [server for server in results.nearest_servers if server in catalog.servers][:shown]
    if not results.searched and (reason := _filter_reason(request, catalog, shown)):
        servers = nearest or sorted(catalog.servers)
        return f"{reason} {'The nearest' if nearest else 'Servers'}: {_some(servers, shown)}."
    if not request.query.strip():
        return (
            f"The query is empty: say in plain words what you want to do. "
            f"The servers: {_counted(catalog, shown)}."
        )
    sentences = [unknown_words_text(results, shown, pending) or f"No tool{_so_far(pending)} matches."]
    if results.nearest_words:
        sentences.append(f"Nearest words: {', '.join(results.nearest_words[:shown])}.")
    if nearest:
        sentences.append(f"Nearest servers: {_some(nearest, shown)}.")
    else:
        sentences.append(f"Servers: {_counted(catalog, shown)}.")
    return " ".join(sentences)


def _filter_reason(request: SearchRequest, catalog: Catalog, shown: int) -> str:
    """Why the server filters leave no tool; "" without a server filter."""
    filters = request.filters
    wanted = [*parse_truncated(request.query).servers, *([filters.server] if filters.server else [])]
    known = sorted(catalog.servers)
    unknown = [server for server in dict.fromkeys(wanted) if not matching_servers(known, server)]
    if unknown:
        return f"There is no server {_words(unknown, shown)}."
    if wanted:
        return f"The filters leave no tool of {_words(list(dict.fromkeys(wanted)), shown)}."
    return ""


def _so_far(pending: PendingServers) -> str:
    return " so far" if pending.any else ""


def unknown_words_text(
    results: Results, shown: int = _WORDS_SHOWN, pending: PendingServers = NONE_PENDING
) -> str:
    """A sentence about the unknown words of a query of which no tool has any word; else ""."""
    if results.matching or not results.unknown_words:
        return ""
    return f"No tool{_so_far(pending)} knows {_words(results.unknown_words, shown)}."


# --- the status ---------------------------------------------------------------------------------------------


def _status(
    results: Results,
    catalog: Catalog,
    unavailable: Mapping[str, str],
    now: float,
    detail: int,
    pending: PendingServers,
) -> str:
    """detail: 2 for everything, 1 without the reasons of servers, 0 without any reasons."""
    found = {hit.entry.server for hit in results.hits}
    strong = results.quality == "strong"
    down = _unavailable_lines(found, catalog, unavailable, now, detail, found_strong=strong)
    lines = (*_pending_lines(pending, detail), *down)
    return "\n".join([f"-- {summary_line(results, detail)}", *lines])


def _review(report: SearchReport, server: str = "") -> str:
    """The command with which a person looks at what is held back."""
    return mcpzip_command(report.config, "review", *([server] if server else []))


def held_lines(report: SearchReport) -> Iterator[str]:
    """What is held back, by number only: a model is not told what."""
    if report.pins_problem:
        yield f"-- new and changed tools are held back: {_review(report)}"
    elif len(report.held) == 1:
        for server, what in report.held.items():
            yield f"-- {what} held back: {_review(report, server)}"
    elif report.held:
        what = ", ".join(f"{server} {what}" for server, what in [*report.held.items()][:SERVERS_NAMED])
        more = len(report.held) - SERVERS_NAMED
        yield f"-- held back: {what}{f' and of {more} more servers' if more > 0 else ''}: {_review(report)}"


def _pending_lines(pending: PendingServers, detail: int) -> Iterator[str]:
    for what, servers in (("still starting", pending.starting), ("not indexed yet", pending.unindexed)):
        if servers:
            count = f"{len(servers)} {'server' if len(servers) == 1 else 'servers'}"
            which = _some(sorted(servers), SERVERS_NAMED) if detail == 2 else count
            yield f"-- {what}, their tools are not in this answer: {which}"


def summary_line(results: Results, detail: int = 2) -> str:
    """How many tools were found and by which tiers, the quality of the first, absent tiers and replaced
    words. detail: 0 leaves out reasons and replaced words.
    """
    parts = [_count(results)]
    if results.hits:
        parts.append("+".join(results.tiers))
        if not parts[0].startswith(_NO_FIT):
            parts.append(results.quality)
    if results.elsewhere:
        parts.append(f"also from {_some(results.elsewhere, _OTHER_SERVERS_SHOWN if detail else 1)}")
    parts += [_absence(absence, detail) for absence in results.absent]
    if results.corrected and detail:
        pairs = [
            f"{_quoted(wrong, _WORD_LENGTH)} as {_quoted(right, _WORD_LENGTH)}"
            for wrong, right in results.corrected[:_WORDS_SHOWN]
        ]
        parts.append("read " + ", ".join(pairs))
    return " · ".join(filter(None, parts))


def _count(results: Results) -> str:
    """How many of the searched tools match by words, and how many by meaning only."""
    near = sum(map(is_near, results.hits))
    matches = len(results.hits) - near
    if not near:
        return f"{matches} of {max(matches, results.matching)} matches in {results.searched} tools"
    if not matches and results.quality == "weak":
        return f"{_NO_FIT}; the {near} nearest in meaning of {results.searched} tools"
    if not matches and not results.matching:
        return f"{near} nearest in meaning of {results.searched} tools"
    matching = max(matches, results.matching)
    return f"{matches} of {matching} matches and {near} nearest in meaning in {results.searched} tools"


def is_near(hit: Hit) -> bool:
    """Whether a tool was found by meaning only: neither its texts nor its name match a word of the query."""
    return not hit.matched and hit.score < _NAME_MATCH and (hit.tier == LLM or hit.similarity is not None)


def _absence(absence: TierAbsence, detail: int) -> str:
    reason = f": {shortened(absence.reason)}" if detail else ""
    return f"{absence.tier} ({absence.method}) absent{reason}"


def _unavailable_lines(
    found: Container[str],
    catalog: Catalog,
    unavailable: Mapping[str, str],
    now: float,
    detail: int,
    *,
    found_strong: bool,
) -> Iterator[str]:
    """The servers that are down. Why is said only of servers that matter for this search: those of ``found``,
    the servers of its results, and, unless the results are strong, those whose tools aren't known.
    unavailable: the reasons by server.
    """
    if detail < 2:
        if unavailable:
            servers = "1 server is" if len(unavailable) == 1 else f"{len(unavailable)} servers are"
            yield f"-- {servers} down; see {STATUS}"
        return
    others = []
    shown = 0
    for server, why in sorted(unavailable.items()):
        record = catalog.servers.get(server)
        fetched = record.fetched_at if record else None
        matters = server in found or not (fetched or found_strong)
        if not matters or shown == _UNAVAILABLE_SHOWN:
            others.append(server)
            continue
        known = f"tools of {age(now - fetched)} ago" if fetched else "no tools yet"
        yield f"-- {server} is down ({known}): {shortened(why)}"
        shown += 1
    if others:
        also = "also down" if shown else "down"
        yield f"-- {also}: {_some(others, SERVERS_NAMED)}; see {STATUS}"


# --- texts -------------------------------------------------------------------------------------------------


def shortened(text: str, max_length: int = _REASON_LENGTH) -> str:
    """``text`` on one line, cut to ``max_length`` characters."""
    text = one_line(text[: 20 * max_length])
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def _first_fitting(texts: Iterator[str], budget: int) -> ToolLine:
    """The first of ``texts`` with at most ``budget`` tokens, else the last."""
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


def _words(words: Sequence[str], shown: int) -> str:
    length = _WORD_LENGTH if shown > 1 else _MIN_WORD_LENGTH
    return _some([_quoted(word, length) for word in words], min(shown, _WORDS_SHOWN))


def _quoted(word: str, length: int) -> str:
    return f"'{shortened(word, length)}'"


def _some(names: Sequence[str], shown: int) -> str:
    return ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if len(names) > shown else "")
