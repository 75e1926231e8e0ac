"""Escapes characters in untrusted text that could deceive a terminal, the user or a model (pure).

1. Control characters (C0 and C1 of ECMA-48, such as ESC, CSI, CR and backspace) become escapes: ``\\x1b``.
2. So do characters that hide or reorder others: directional formatting, characters without width, tags,
   variation selectors and lone surrogates. A joiner between two characters, as in Persian or in an emoji,
   stays.
3. A character has at most `SHOWN_MARKS` combining marks, and lines and texts are cut (`mcpzip.model.limits`).

A harmless text is returned unchanged. JSON gets JSON escapes, which keep its meaning.
"""

import re
import unicodedata

from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.model.limits import SHOWN_LINE, SHOWN_MARKS, SHOWN_TEXT, SHOWN_WORDS

_SUSPECT = lazy_pattern(r"[^\n\t\x20-\x7e]+")
_HIDDEN = lazy_pattern(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0d\uffa0\ufff0-\ufff8"
    "\U000e0000-\U000e0fff]"
)
"""Characters without a shape that Python calls printable. U+FE0E and U+FE0F, which select the text or emoji
style, are harmless."""
_JOINERS = "\u200c\u200d"
_NARROW, _MARK, _SPACE = 0x10000, "M", "Zs"


def lines(text: str, most: int = SHOWN_TEXT) -> str:
    """``text`` for the user, with line breaks and tabs. most: the maximum of characters."""
    left = len(text) - most
    if left > 0:
        text = text[:most]
    plain = text.isascii() and text.isprintable()
    shown = text if plain else _SUSPECT.sub(_run, text.replace("\r\n", "\n"))
    if len(shown) > SHOWN_LINE:
        shown = "\n".join(map(_cut, shown.split("\n")))
    return f"{shown}… ({left:,} more characters)" if left > 0 else shown


def one_line(text: str, most: int = SHOWN_WORDS) -> str:
    """``text`` for the user, with spaces for line breaks and tabs. most: the maximum of characters."""
    shown = text if len(text) <= most else text[: most - 1] + "…"
    if shown.isascii() and shown.isprintable():
        return shown
    return _SUSPECT.sub(_run, shown.replace("\r\n", "\n")).replace("\n", " ").replace("\t", " ")


def spaced(text: str) -> str:
    """``text`` on one line, with spaces instead of escapes."""
    if text.isascii() and text.isprintable():
        return text
    return _SUSPECT.sub(_run_spaced, text).replace("\n", " ").replace("\t", " ")


def json_text(text: str) -> str:
    """The JSON ``text`` with JSON escapes, which keep its meaning."""
    if text.isascii() and text.isprintable():
        return text
    return _SUSPECT.sub(lambda run: _run(run, _json_escape), text.replace("\r", " "))


def _cut(line: str) -> str:
    if len(line) <= SHOWN_LINE:
        return line
    return f"{line[:SHOWN_LINE]}… ({len(line) - SHOWN_LINE:,} more characters)"


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _json_escape(character: str) -> str:
    number = ord(character)
    if number < _NARROW:
        return f"\\u{number:04x}"
    high, low = divmod(number - _NARROW, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def _run(found: re.Match[str], escape: "Escape" = _escape) -> str:
    """A run of characters outside printable ASCII, escaped."""
    run = found[0]
    if len(run) <= SHOWN_MARKS and run.isprintable() and _HIDDEN.search(run) is None:
        return run
    shown: list[str] = []
    marks = 0
    for at, char in enumerate(run):
        category = unicodedata.category(char)
        marks = marks + 1 if category.startswith(_MARK) else 0
        if marks > SHOWN_MARKS:
            shown.append(escape(char) if escape is _json_escape else "…" if marks == SHOWN_MARKS + 1 else "")
        elif char.isprintable():
            shown.append(escape(char) if _HIDDEN.match(char) else char)
        elif category == _SPACE:
            shown.append(char if escape is _json_escape else " ")
        elif char in _JOINERS and _joins(run, at):
            shown.append(char)
        else:
            shown.append(escape(char))
    return "".join(shown)


def _run_spaced(found: re.Match[str]) -> str:
    return _run(found, lambda _: " ")


def _joins(run: str, at: int) -> bool:
    """Whether there is a visible character on both sides of the joiner at ``at``."""
    before, after = run[at - 1 : at], run[at + 1 : at + 2]
    return all(char != "" and char.isprintable() and _HIDDEN.match(char) is None for char in (before, after))


TYPE_CHECKING = False  # as in `typing`, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Callable

    Escape = Callable[[str], str]
