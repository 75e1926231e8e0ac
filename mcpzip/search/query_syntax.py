"""What a query asks for besides its words: `server:name`, `-word`, `"a phrase"`.

The rule: only what can't be plain English is taken as a sign. A hyphen counts at the beginning of a word of
two letters or more, at the beginning or the end of the query ("send -draft", not "a - b" or "find -name x"),
a colon only after `server`, and quotation marks only around two words or more ("Hello" in quotes is a value,
as often as not). What is left over is what is searched for; the words of a phrase are part of it. A query of
signs alone asks for all that they leave.
"""

import re
from dataclasses import dataclass

_SIGN = re.compile(
    r"""(?<!\S)(?P<but>-?)server:(?:"(?P<quoted>[^"]{1,100})"|(?P<server>[^\s"]{1,100}))"""
    r"""|(?<![-\w])["“”«„](?P<phrase>[^"“”«»„]{1,200})["“”»]"""
)
_WITHOUT = re.compile(r"-[^\W\d_][\w.-]+")
_MOST_SIGNS = 16


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query, taken apart.

    written: the query. text: what is searched for. servers: where. without: words that a tool must not have.
    phrases: what it must. but: where not.
    """

    written: str
    text: str
    servers: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    but: tuple[str, ...] = ()


def parse_query(query: str) -> ParsedQuery:
    """``query`` and its signs. Never raises; a query with more signs than anybody writes has none."""
    if not any(sign in query for sign in ("server:", "-", '"', "“", "”", "«", "„")):
        return ParsedQuery(query, query)
    signs = [sign for sign in _SIGN.finditer(query) if sign["phrase"] is None or sign["phrase"].strip()]
    text, end = [], 0
    for sign in signs:
        text.append(query[end : sign.start()])
        text.append(sign["phrase"] or "")
        end = sign.end()
    text.append(query[end:])
    words, without = _without(" ".join(text).split())
    if (not signs and not without) or len(signs) + len(without) > _MOST_SIGNS:
        return ParsedQuery(query, query)
    named = [sign for sign in signs if sign["quoted"] or sign["server"]]
    return ParsedQuery(
        written=query,
        text=" ".join(words),
        servers=tuple(sign["quoted"] or sign["server"] for sign in named if not sign["but"]),
        but=tuple(sign["quoted"] or sign["server"] for sign in named if sign["but"]),
        without=tuple(without),
        phrases=tuple(sign["phrase"].strip() for sign in signs if len((sign["phrase"] or "").split()) > 1),
    )


def _without(words: list[str]) -> tuple[list[str], list[str]]:
    """``words`` without those, at the beginning and the end, that say what is not wanted; and these."""
    start, end = 0, len(words)
    while end > start and _WITHOUT.fullmatch(words[end - 1]):
        end -= 1
    while start < end and _WITHOUT.fullmatch(words[start]):
        start += 1
    return words[start:end], [word.removeprefix("-") for word in (*words[:start], *words[end:])]
