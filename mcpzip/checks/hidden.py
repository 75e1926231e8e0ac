"""Characters that hide text from people and not from models (pure).

The rule: the text is looked at as it was sent. A character that its script needs is no finding: joiners
between letters of Persian or Indic scripts and inside emoji, marks of direction in right-to-left text, a
variation selector after an emoji or an ideograph, the tags of a flag.

Sources: Unicode Technical Standard 51 (emoji sequences), Unicode Standard 23 (special areas and format
characters), Unicode Technical Report 36 (security considerations), CVE-2021-42574 (bidirectional controls).
"""

import re
import unicodedata
from collections.abc import Iterator

from mcpzip.checks.finding import INVISIBLE, Hit, Severity
from mcpzip.model.lazy_pattern import lazy_pattern

_WIDE, _TALL = 200, 40
"""Spaces and line ends in a row that push what follows out of sight."""
_ANY = lazy_pattern(f"[{INVISIBLE}]|[ \u00a0\u2000-\u200a\u3000]{{{_WIDE}}}|\n{{{_TALL}}}")
_LINES = {ord("\n"): None, ord("\t"): None, ord("\r"): None}
_TAGS = lazy_pattern("[\U000e0000-\U000e007f]+")
_FLAG = lazy_pattern("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f")
_FLAGS = frozenset(("gbeng", "gbsct", "gbwls"))
_OVERRIDES = lazy_pattern("[\u202d\u202e]")
_EMBEDDINGS = lazy_pattern("[\u202a\u202b\u202c\u2066-\u2069\u206a-\u206f]")
_MARKS = lazy_pattern("[\u200e\u200f\u061c]{3,}")
_RTL = lazy_pattern("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")
_ZERO = (
    "\u200b\u200c\u200d\u2060-\u2064\u00ad\ufeff\u180e\u115f\u1160\u3164\uffa0\u17b4\u17b5\u034f\ufff0-\ufffb"
)
_ZERO_RUN = lazy_pattern(f"[{_ZERO}]+")
_ALPHABET = lazy_pattern(r"[A-Za-z\u00c0-\u024f\u0370-\u052f]")
"""Letters of scripts that need no joiners: Latin, Greek, Cyrillic."""
_SELECTORS = lazy_pattern("[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
_PRIVATE = lazy_pattern("[\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd]+")
_CONTROLS = lazy_pattern("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]+")
_BLANK = lazy_pattern(f"[ \u00a0\u2000-\u200a\u3000]{{{_WIDE},}}|\n{{{_TALL},}}|\u2800{{8,}}")
_FILLERS = "\u115f\u1160\u3164\uffa0"
_SOFT_HYPHEN = "\u00ad"
"""It belongs in words, but hardly in a description."""
_CHANNEL = 4
"""Characters without width in a row that are more than an accident."""
_PRIVATE_RUN = 4


def may_hide(text: str) -> bool:
    """Whether a character of ``text`` can be a finding."""
    if text.isascii() and text.translate(_LINES).isprintable():
        return " " * _WIDE in text or "\n" * _TALL in text
    return _ANY.search(text) is not None


def hidden_text(text: str, *, name: bool = False) -> Iterator[Hit]:
    """Each kind of hidden character in ``text``, once. name: it is an identifier, in which none belongs."""
    if not may_hide(text):
        return
    for check, hits in (
        ("hidden.tags", _tags(text)),
        ("hidden.bidi", _bidi(text)),
        ("hidden.zero-width", _zero_width(text, name)),
        ("hidden.variation", _variation(text)),
        ("hidden.private-use", _private(text)),
        ("hidden.control", _control(text)),
        ("hidden.blank", _blank(text)),
    ):
        worst = min(hits, key=lambda hit: ("hard", "risky", "note").index(hit[0]), default=None)
        if worst is not None:
            severity, found = worst
            yield Hit(check, "hard" if name and severity == "risky" else severity, found.start(), found.end())


_Found = Iterator[tuple[Severity, re.Match[str]]]


def _tags(text: str) -> _Found:
    """Tag characters outside the three flags that have them (UTS 51, ED-14a)."""
    flags = {
        found.start() + 1
        for found in _FLAG.finditer(text)
        if "".join(chr(ord(char) - 0xE0000) for char in found[0][1:-1]) in _FLAGS
    }
    for found in _TAGS.finditer(text):
        if found.start() not in flags or len(found[0]) > len("gbeng") + 1:
            yield "hard", found


def _bidi(text: str) -> _Found:
    """Overrides; other directional formatting where nothing is written from right to left; many marks."""
    rtl = _RTL.search(text) is not None
    for found in _OVERRIDES.finditer(text):
        yield "risky" if rtl else "hard", found
    if not rtl:
        for found in _EMBEDDINGS.finditer(text):
            yield "hard", found
    for found in _MARKS.finditer(text):
        yield "hard", found


def _zero_width(text: str, name: bool) -> _Found:
    """Characters without width in a row, or inside a word of a script that needs none."""
    for found in _ZERO_RUN.finditer(text):
        run = found[0]
        before, after = text[found.start() - 1 : found.start()], text[found.end() : found.end() + 1]
        if len(run) >= _CHANNEL or any(char in run for char in _FILLERS):
            yield "hard", found
        elif name:
            yield "risky" if not _joined(run, before, after) else "note", found
        elif _ALPHABET.match(before) and _ALPHABET.match(after):
            yield "risky", found
        elif run == "\u200d" and not _joined(run, before, after):
            yield "note", found
    words = [
        found for found in _ZERO_RUN.finditer(text) if found[0] != _SOFT_HYPHEN and _inside_word(text, found)
    ]
    if len(words) > 2:  # one is an accident of copying, several cut words so that no filter finds them
        yield "hard", words[0]


def _inside_word(text: str, found: re.Match[str]) -> bool:
    before, after = text[found.start() - 1 : found.start()], text[found.end() : found.end() + 1]
    return bool(_ALPHABET.match(before) and _ALPHABET.match(after))


def _joined(run: str, before: str, after: str) -> bool:
    """Whether a joiner follows a letter or mark of a script that has joiners, or stands between two emoji."""
    if run not in "\u200c\u200d" or not before or before.isascii() or _ALPHABET.match(before):
        return False
    return unicodedata.category(before)[0] in "LM" or (after != "" and not after.isascii())


def _variation(text: str) -> _Found:
    """Selectors in a row, and a supplementary one after anything but an ideograph."""
    for found in _SELECTORS.finditer(text):
        run, before = found[0], text[found.start() - 1 : found.start()]
        if len(run) > 1 or (
            run >= "\U000e0100" and not ("\u3400" <= before <= "\u9fff" or before >= "\U00020000")
        ):
            yield "hard", found
        elif run < "\ufe0e" and before.isascii():
            yield "risky", found


def _private(text: str) -> _Found:
    for found in _PRIVATE.finditer(text):
        yield "hard" if len(found[0]) >= _PRIVATE_RUN else "note", found


def _control(text: str) -> _Found:
    for found in _CONTROLS.finditer(text):
        lone = all(unicodedata.category(char) == "Cs" for char in found[0])
        escape = "\x1b" in found[0] or "\x9b" in found[0] or "\x08" in found[0]
        yield "hard" if escape else "note" if lone or found[0].isspace() else "risky", found


def _blank(text: str) -> _Found:
    """Blanks with something after them. Braille that goes on is a picture."""
    for found in _BLANK.finditer(text):
        after = text[found.end() : found.end() + 1]
        if after and not after.isspace() and not (found[0][0] == "\u2800" and "\u2800" < after < "\u2900"):
            yield "risky", found
