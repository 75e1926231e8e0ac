"""The search operators of a query: `server:name`, `-server:name`, `-word` and `"a phrase"`.

The rule: text is an operator only where it can't be plain English. A hyphen excludes a word of two letters or
more, at the beginning or the end of the query ("send -draft", not "a - b" or "find -name x"); a colon counts
only after `server`; quotation marks only around two words or more ("Hello" in quotes is mostly a value) and
beside two other words at most: who writes more describes what to do, and quotes a value ('set the status of
the ticket to "in progress"'). The rest is the text to search for, and the words of a phrase are part of it.
A query of operators alone matches every tool that they leave.
"""

import msgspec

from mcpzip.model.lazy_pattern import lazy_pattern

_OPERATOR = lazy_pattern(
    r"""(?<!\S)(?P<but>-?)server:(?:"(?P<quoted>[^"]{1,100})"|(?P<server>[^\s"]{1,100}))"""
    r"""|(?<![-\w])["“”«„](?P<phrase>[^"“”«»„]{1,200})["“”»]"""
)
_EXCLUDED_WORD = lazy_pattern(r"-[^\W\d_][\w.-]+")
_MAX_OPERATORS = 16
_MAX_BESIDE = 2  # words that are no operators, beside a phrase


class ParsedQuery(msgspec.Struct, frozen=True):
    """A query, parsed.

    written: the whole query. text: the query without its operators. servers, excluded_servers: names of
    servers to search, and not to search. excluded_words, phrases: what a tool must not have, and must have.
    """

    written: str
    text: str
    servers: tuple[str, ...] = ()
    excluded_words: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    excluded_servers: tuple[str, ...] = ()


def parse_query(query: str) -> ParsedQuery:
    """``query``, parsed. Never raises; where there are more than 16 operators, all are taken as text."""
    if not any(sign in query for sign in ("server:", "-", '"', "“", "”", "«", "„")):
        return ParsedQuery(query, query)
    operators = [
        match for match in _OPERATOR.finditer(query) if match["phrase"] is None or match["phrase"].strip()
    ]
    text, end = [], 0
    for match in operators:
        text.append(query[end : match.start()])
        text.append(match["phrase"] or "")
        end = match.end()
    text.append(query[end:])
    words, excluded = _split_excluded(" ".join(text).split())
    if (not operators and not excluded) or len(operators) + len(excluded) > _MAX_OPERATORS:
        return ParsedQuery(query, query)
    of_servers = [match for match in operators if match["quoted"] or match["server"]]
    quoted = [match["phrase"].strip() for match in operators if match["phrase"]]
    beside = sum(any(map(str.isalnum, word)) for word in words) - sum(len(each.split()) for each in quoted)
    return ParsedQuery(
        written=query,
        text=" ".join(words),
        servers=tuple(match["quoted"] or match["server"] for match in of_servers if not match["but"]),
        excluded_servers=tuple(match["quoted"] or match["server"] for match in of_servers if match["but"]),
        excluded_words=tuple(excluded),
        phrases=tuple(each for each in quoted if len(each.split()) > 1 and beside <= _MAX_BESIDE),
    )


def _split_excluded(words: list[str]) -> tuple[list[str], list[str]]:
    """``words`` without the excluded ones at its start and end; and the excluded ones, without hyphens."""
    start, end = 0, len(words)
    while end > start and _EXCLUDED_WORD.fullmatch(words[end - 1]):
        end -= 1
    while start < end and _EXCLUDED_WORD.fullmatch(words[start]):
        start += 1
    return words[start:end], [word.removeprefix("-") for word in (*words[:start], *words[end:])]
