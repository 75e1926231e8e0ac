"""Text that somebody else wrote, made harmless to whoever reads it, a person or a model (pure).

The rules:

1. Nothing in it is obeyed: control characters of both sets (ECMA-48's C0 and C1, so ESC, CSI, OSC, CR and
   backspace) are shown as the escapes that name them, ``\\x1b``.
2. Nothing in it hides or reorders what stands around it: directions, characters without width, tags,
   selectors and lone surrogates are shown as escapes too. A joiner between two characters that need one, as
   in Persian or in an emoji, stays.
3. Nothing in it covers its neighbours: one character carries `SHOWN_MARKS` marks at most, and a line or a
   text ends where `mcpzip.model.limits` has it end.

A harmless text comes back as it is. What programs are given is never changed here: JSON only gets its own
escapes, so that it means the same.
"""

import re
import unicodedata

from mcpzip.model.limits import SHOWN_LINE, SHOWN_MARKS, SHOWN_TEXT, SHOWN_WORDS

_SUSPECT = re.compile(r"[^\n\t\x20-\x7e]+")
_HIDDEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0d\uffa0\ufff0-\ufff8"
    "\U000e0000-\U000e0fff]"
)
"""Characters that are printable to Python and have no shape of their own. U+FE0E and U+FE0F, which say
whether a sign is an emoji, are no danger."""
_JOINERS = "\u200c\u200d"
_NARROW, _MARK, _SPACE = 0x10000, "M", "Zs"


def lines(text: str, most: int = SHOWN_TEXT) -> str:
    """``text`` for a person: its lines and tabs are kept, everything else that acts is shown as an escape.

    most: characters of it that are shown.
    """
    left = len(text) - most
    if left > 0:
        text = text[:most]
    plain = text.isascii() and text.isprintable()
    shown = text if plain else _SUSPECT.sub(_run, text.replace("\r\n", "\n"))
    if len(shown) > SHOWN_LINE:
        shown = "\n".join(map(_cut, shown.split("\n")))
    return f"{shown}… ({left:,} more characters)" if left > 0 else shown


def one_line(text: str, most: int = SHOWN_WORDS) -> str:
    """``text`` for a person, on one line: a name, a sentence, a reason. Ends of lines and tabs are spaces.

    most: characters of it that are shown.
    """
    shown = text if len(text) <= most else text[: most - 1] + "…"
    if shown.isascii() and shown.isprintable():
        return shown
    return _SUSPECT.sub(_run, shown.replace("\r\n", "\n")).replace("\n", " ").replace("\t", " ")


def spaced(text: str) -> str:
    """``text`` on one line, with a space for each character that acts or hides."""
    if text.isascii() and text.isprintable():
        return text
    return _SUSPECT.sub(_run_spaced, text).replace("\n", " ").replace("\t", " ")


def json_text(text: str) -> str:
    """``text``, which is JSON, with JSON's own escapes for what acts: it means the same."""
    if text.isascii() and text.isprintable():
        return text
    return _SUSPECT.sub(lambda run: _run(run, _json_escape), text.replace("\r", " "))


def _cut(line: str) -> str:
    if len(line) <= SHOWN_LINE:
        return line
    return f"{line[:SHOWN_LINE]}… ({len(line) - SHOWN_LINE:,} more characters)"


def _escape(sign: str) -> str:
    return sign.encode("unicode_escape").decode()


def _json_escape(sign: str) -> str:
    number = ord(sign)
    if number < _NARROW:
        return f"\\u{number:04x}"
    high, low = divmod(number - _NARROW, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def _run(found: re.Match[str], escape: "Escape" = _escape) -> str:
    """One run of characters beyond printable ASCII, and what may be shown of it."""
    run = found[0]
    if len(run) <= SHOWN_MARKS and run.isprintable() and _HIDDEN.search(run) is None:
        return run
    shown: list[str] = []
    marks = 0
    for at, sign in enumerate(run):
        kind = unicodedata.category(sign)
        marks = marks + 1 if kind.startswith(_MARK) else 0
        if marks > SHOWN_MARKS:
            shown.append(escape(sign) if escape is _json_escape else "…" if marks == SHOWN_MARKS + 1 else "")
        elif sign.isprintable():
            shown.append(escape(sign) if _HIDDEN.match(sign) else sign)
        elif kind == _SPACE:
            shown.append(sign if escape is _json_escape else " ")
        elif sign in _JOINERS and _joins(run, at):
            shown.append(sign)
        else:
            shown.append(escape(sign))
    return "".join(shown)


def _run_spaced(found: re.Match[str]) -> str:
    return _run(found, lambda _: " ")


def _joins(run: str, at: int) -> bool:
    """Whether there is a character on either side that a joiner can act on."""
    before, after = run[at - 1 : at], run[at + 1 : at + 2]
    return all(sign != "" and sign.isprintable() and _HIDDEN.match(sign) is None for sign in (before, after))


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Escape = Callable[[str], str]
