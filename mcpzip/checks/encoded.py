"""Encoded text that decodes to a command or an order (pure).

Most encoded text is honest: tokens, hashes, images, examples. So what counts is only what it decodes to.

Sources: the class *encoded payload* of MCP-SafetyBench (arXiv 2512.15163); CWE-506; for URLs, CWE-79.
"""

import binascii
import re
from collections.abc import Callable, Iterator

from mcpzip.checks.finding import Hit
from mcpzip.checks.instructions import RULES, instruction_like
from mcpzip.checks.texts import folded
from mcpzip.model.lazy_pattern import lazy_pattern

_BASE64 = lazy_pattern(r"[A-Za-z0-9+/_-]{20,}={0,2}")
_HEX = lazy_pattern(r"(?<![0-9A-Za-z])(?:0x)?([0-9A-Fa-f]{32,})(?![0-9A-Za-z])")
_ESCAPES: tuple[tuple[re.Pattern[str], Callable[[str], bytes]], ...] = (
    (lazy_pattern(r"(?:\\x[0-9A-Fa-f]{2}){6,300}"), lambda run: bytes.fromhex(run.replace("\\x", ""))),
    (lazy_pattern(r"(?:\\u00[0-9A-Fa-f]{2}){6,300}"), lambda run: bytes.fromhex(run.replace("\\u00", ""))),
    (lazy_pattern(r"(?:%[0-9A-Fa-f]{2}){6,300}"), lambda run: bytes.fromhex(run.replace("%", ""))),
    (lazy_pattern(r"(?:&#(?:[0-9]{2,3}|x[0-9A-Fa-f]{2});){6,300}"), lambda run: _entities(run)),
)
_WORDS = ("curl", "wget", "powershell", "base64", "script:", "data:")
SHORTEST = 18
"""Characters of the shortest word in which something is encoded: six escapes."""
_LONG = 20
"""Characters of a word that can be encoded text."""
_DECODED = 4_096
"""Characters of one encoded text that are decoded."""
_MOST = 64
"""Encoded texts that are decoded in one string."""
_COMMAND = lazy_pattern(
    r"\b(?:curl|wget)\b.{0,200}(?:https?://|\|)|\|\s?(?:ba|z)?sh\b|\bpowershell\b|\bnew-object\b|\biex\b|"
    r"\binvoke-(?:expression|webrequest)|\brm -rf\b|/bin/(?:ba)?sh\b|\bos\.system\(|\bsubprocess\b|\beval\(|"
    r"\bexec\(|"
    r"<script|javascript:|\.ssh/id_|\.aws/credentials",
    re.IGNORECASE,
)
_PIPED = (
    lazy_pattern(r"\b(?:curl|wget)\b[^|\n]{0,200}\|\s{0,4}(?:sudo )?(?:ba|z)?sh\b", re.IGNORECASE),
    lazy_pattern(r"\bbase64 (?:-d|-D|--decode)\s{0,4}\|\s{0,4}(?:sudo )?(?:ba|z)?sh\b"),
    lazy_pattern(r"\bpowershell(?:\.exe)? [^|\n]{0,60}-e(?:nc|ncodedcommand)?\b", re.IGNORECASE),
)
_DECODED_AND_RUN = lazy_pattern(r"\b(?:exec|eval|system|popen)\(.{0,80}b64decode", re.IGNORECASE)
_URL = lazy_pattern(
    r"\s{0,9}(?:javascript:|vbscript:|data:(?:text/html|application/xhtml|image/svg\+xml))", re.I
)
_LINK = lazy_pattern(r"\]\(\s{0,9}(?:javascript:|vbscript:|data:text/html)", re.IGNORECASE)
"""A link in Markdown that runs a script."""
_ACTIVE = lazy_pattern(r"<script|\son\w{3,20}\s?=|javascript:", re.IGNORECASE)
_MARKS = ("\\x", "\\u00", "%", "&#")


def may_be_encoded(text: str) -> bool:
    """Whether `encoded_text` can find something in ``text`` or a part of it."""
    lowered = text.lower()
    return (
        any(word in lowered for word in _WORDS)
        or any(mark in text for mark in _MARKS)
        or any(len(word) >= _LONG and _mixed(word) for word in text.split())
    )


def _mixed(word: str) -> bool:
    """Whether ``word`` has a digit or a capital, as encoded text has."""
    return word != word.lower() or any(char in word for char in "0123456789")


def may_be_active_url(text: str) -> bool:
    """Whether ``text`` is a URL, or has a link, that `encoded_text` looks at."""
    if ":" in text[:32] and _URL.match(text) is not None:
        return True
    return "](" in text and _LINK.search(text) is not None


def decodes_to_order(text: str) -> bool:
    """Whether something in ``text`` decodes to a command or an order."""
    return next(_payload(text), None) is not None


def encoded_text(text: str) -> Iterator[Hit]:
    """What is encoded in ``text`` and decodes to a command or an order; and commands that decode or
    download."""
    if ":" in text[:32] and (found := _URL.match(text)):
        active = "svg" not in found[0].lower() or _ACTIVE.search(text) or _ACTIVE.search(_of_data_url(text))
        if active:
            yield Hit("encoded.url", "hard", found.start(), found.end())
    elif "](" in text and (found := _LINK.search(text)):
        yield Hit("encoded.url", "hard", found.start(), found.end())
    if len(text) < _LONG or not may_be_encoded(text):
        return
    yield from _payload(text)
    lowered = text.lower()
    if "sh" in lowered and any(word in lowered for word in ("curl", "wget", "base64", "powershell")):
        for pattern in _PIPED:
            if found := pattern.search(text):
                yield Hit("encoded.command", "risky", found.start(), found.end())
                return
    if "b64decode" in lowered and (found := _DECODED_AND_RUN.search(text)):
        yield Hit("encoded.command", "risky", found.start(), found.end())


def _payload(text: str) -> Iterator[Hit]:
    runs: list[tuple[int, int, str]] = []
    for found in _BASE64.finditer(text):
        runs.append((*found.span(), _from_base64(found[0][:_DECODED])))
        if len(runs) == _MOST:
            break
    for found in _HEX.finditer(text):
        if len(runs) < 2 * _MOST:
            digits = found[1][:_DECODED]
            runs.append((*found.span(), _readable(bytes.fromhex(digits[: len(digits) // 2 * 2]))))
    if any(mark in text for mark in _MARKS):
        for pattern, decode in _ESCAPES:
            for found in pattern.finditer(text):
                if len(runs) < 3 * _MOST:
                    runs.append((*found.span(), _readable(decode(found[0]))))
    for start, end, plain in runs:
        if plain and _orders(plain):
            yield Hit("encoded.payload", "hard", start, end)
            return


def _orders(plain: str) -> bool:
    if _COMMAND.search(plain):
        return True
    text = folded(plain)
    return any(True for _ in instruction_like(text, RULES.wanted(text)))


def _from_base64(run: str) -> str:
    body = run.rstrip("=").replace("-", "+").replace("_", "/")
    body = body[: len(body) - (len(body) % 4 == 1)]
    try:
        return _readable(binascii.a2b_base64(body + "=" * (-len(body) % 4)))
    except binascii.Error:
        return ""


def _readable(plain: bytes) -> str:
    """``plain`` as text, "" if it isn't text."""
    if plain[1:16:2] and not plain[1:16:2].strip(b"\0"):  # UTF-16, as PowerShell wants it
        plain = plain[::2]
    try:
        text = plain.decode("utf-8")
    except UnicodeDecodeError:
        text = plain[:-3].decode("utf-8", "ignore") if plain[:24].isascii() else ""
    return text if sum(char.isprintable() or char.isspace() for char in text) >= 0.95 * len(text) else ""


def _entities(run: str) -> bytes:
    numbers = [part[2:] for part in run.split(";") if part.startswith("&#")]
    values = [int(number[1:], 16) if number[0] in "xX" else int(number) for number in numbers if number[1:]]
    return bytes(value for value in values if value < 256)


def _of_data_url(text: str) -> str:
    head, _, body = text.partition(",")
    return _from_base64(body) if head.lower().endswith(";base64") else ""
