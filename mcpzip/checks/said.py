"""What a server says while it is called: the texts of its errors, and its questions (pure).

1. Only text that hides something or gives orders counts. Colours of a terminal, blank lines and advice to
   install something are usual in errors, so these checks are left out.
2. A question to the model (sampling) is an order by its nature. Of it only what is *hard* counts.
3. A text is read as far as it was received, also if its end was cut off.

Sources: CyberArk (ATPA, May 2025) for errors; for questions the specification (client/elicitation: by a form,
"servers MUST NOT request sensitive information").
"""

import json
import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Literal

from mcpzip.checks import encoded, hidden, instructions
from mcpzip.checks.finding import SEVERITIES, Finding, Hit, finding
from mcpzip.checks.texts import JsonMembers, TooMuchError, decoded, folded, member, pieces, words_of_name
from mcpzip.model import limits
from mcpzip.model.surface import Item

What = Literal["error", "question", "sampling"]
"""error: a result with ``isError``, or an error of JSON-RPC. question: an elicitation. sampling: a question
to the client's model."""

_DECODER = json.JSONDecoder(strict=False)
_PAIR = 12
"""Characters of the longest escape: two surrogates."""
_USUAL = ("hidden.control", "hidden.blank", "encoded.command", "encoded.url")
"""Checks whose findings are usual in errors."""
_FAILED = re.compile(
    r"\b(?:could not|couldn't|cannot|can't|unable to|failed to|refus\w{1,5} to)\b[^.!?]{0,80}$"
)
"""Before the name of a file of keys: the server has not read it."""
_SECRET = re.compile(
    r"\b(?:pass ?word|passwd|passphrase|pass code|api ?key|secret|private key|"
    r"(?:access|auth|api|bearer|refresh|session|github|personal access) token|token|"
    r"credit card|card number|cvv|cvc|seed phrase|recovery phrase|mnemonic|social security)\b"
)


def found_in(text: bytes, what: What, tool: str) -> list[Finding]:
    """What is odd about ``text``, the JSON text of an error or of the params of a question, the worst first.
    tool: the name of the tool that was called, "" if none was.
    """
    item, text = Item("tool", tool, text), text[: limits.CHECKED_SAID]
    hits = (("", shown, hit) for string in _strings(text) for hit, shown in _hits(string))
    wanted = (each for each in hits if _counts(each[2], what))
    asked = _secrets(text) if what == "question" else ()
    found = [finding(item, *each) for each in islice(chain(asked, wanted), limits.CHECK_FINDINGS)]
    return sorted(found, key=lambda one: SEVERITIES.index(one.severity))


def _counts(hit: Hit, what: What) -> bool:
    """Whether ``hit`` is odd in such a text."""
    if hit.severity == "note" or hit.check in _USUAL:
        return False
    return what != "sampling" or (hit.severity == "hard" and hit.check != "instruction.markup")


def _strings(text: bytes) -> Iterator[str]:
    """Every string in a JSON text, names of members too; of a text that was cut off those that are there."""
    whole = text.decode("utf-8", "replace")
    at = whole.find('"')
    while at != -1:
        try:
            string, end = _DECODER.raw_decode(whole, at)
        except ValueError:
            yield _cut_off(whole[at:])
            return
        yield string
        at = whole.find('"', end)


def _cut_off(text: str) -> str:
    """The string at the beginning of ``text``, which has no end."""
    for length in range(min(_PAIR, len(text))):  # of an escape that was cut off, too
        try:
            string: str = _DECODER.decode(text[: len(text) - length] + '"')
        except ValueError:
            continue
        return string
    return text


def _hits(string: str) -> Iterator[tuple[Hit, str]]:
    """What is odd about a string, and the form of it in which that was found."""
    for hit in hidden.hidden_text(string):
        yield hit, string
    for piece in pieces(string):
        read = folded(piece)
        for hit in instructions.instruction_like(read, instructions.RULES.wanted(read)):
            if hit.severity == "hard" or not _FAILED.search(read[max(0, hit.start - 100) : hit.start]):
                yield hit, read
        for hit in instructions.fake_turns(piece):
            yield hit, piece
    for hit in encoded.encoded_text(string):
        yield hit, string


def _secrets(text: bytes) -> Iterator[tuple[str, str, Hit]]:
    """The fields of a form that ask for what must not be asked for in one."""
    try:
        fields = member(decoded(text), "requestedSchema", "properties")
    except TooMuchError:  # it was cut off
        return
    for name, _ in list(fields)[: limits.CHECK_FINDINGS] if isinstance(fields, JsonMembers) else ():
        if _SECRET.search(folded(words_of_name(name))):
            path = "/requestedSchema/properties"
            yield path, name, Hit("question.secret", "risky", 0, len(name))
