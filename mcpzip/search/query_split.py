"""Several needs in one request: "read the file and post it to Slack" are two.

The rule: a request is cut where a person would breathe – at the end of a sentence or of a line of a list, at
"then", and at an "and" or a comma that a verb follows – and only if every part says something to search for.
A part that has no verb is no need of its own and stays with the one before it.
"""

import re
from collections.abc import Iterator

from mcpzip.search.tokenizer import is_stop_word, words
from mcpzip.search.verbs import families

MOST = 6  # needs that are told apart; a longer request is a document
FEWEST_WORDS = 2  # of a need, stop words left out: "and send it" belongs to what comes before

_SENTENCE = re.compile(
    r"(?<=[a-zA-Z)\]\"'][.!?])\s+(?=[A-Z\d\"'(])|[。！？；]|\n+\s*(?:[-*•]|\d+[.)])?\s*|;\s+"
)
_JOINT = re.compile(
    r",?\s+(?:and\s+)?(?:then|afterwards|after that|finally|next|also),?\s+|,\s+(?:and\s+)?|\s+and\s+",
    re.IGNORECASE,
)
_THEN = re.compile(r"\b(?:then|afterwards|after that|finally|next|also)\b", re.IGNORECASE)
_SPACES = re.compile(r"[^\S\n]+")
_LONGEST = 4_000  # characters
# Words that are a verb when an object follows: "and email it to Anna" is a need, "name and email of" is not.
_VERBS = """
ask block book buy call chart check clean email export file fix flag let log mail message note notify order
pay ping plan plot remind rent reserve schedule sort subscribe summarise summarize tag tell text warn
"""
_FIRST = """
a an all any each every her him it me my our that the their them this those us you your
"""
_VERBS_OR_NOUNS = frozenset(_VERBS.split())
_OBJECTS = frozenset(_FIRST.split())
_LOOKED_AT = 3  # words of a part among which its verb must stand


def split_query(text: str) -> tuple[str, ...]:
    """The needs in ``text``, in order; () when it is one need, or more than anybody can tell apart."""
    if len(text) > _LONGEST:
        return ()
    parts: list[str] = []
    for part in _parts(_SPACES.sub(" ", text)):
        if parts and not _stands_alone(part):
            parts[-1] += " " + part
        else:
            parts.append(part)
    if parts and len(parts) > 1 and not _stands_alone(parts[0]):
        parts[:2] = [f"{parts[0]} {parts[1]}"]
    return tuple(parts) if 2 <= len(parts) <= MOST else ()


def _parts(text: str) -> Iterator[str]:
    for sentence in _SENTENCE.split(text):
        start = 0
        for joint in _JOINT.finditer(sentence):
            if _THEN.search(joint[0]) or _begins_with_verb(sentence[joint.end() : joint.end() + 64]):
                if sentence[start : joint.start()].strip():
                    yield sentence[start : joint.start()].strip()
                start = joint.end()
        if sentence[start:].strip():
            yield sentence[start:].strip()


def _begins_with_verb(part: str) -> bool:
    found = words(part)[:2]
    if not found:
        return False
    if families(found[0][1]):
        return True
    return len(found) == 2 and found[0][0] in _VERBS_OR_NOUNS and found[1][0] in _OBJECTS


def _stands_alone(part: str) -> bool:
    found = words(part)
    said = [pair for pair in found if not is_stop_word(pair)]
    doing = any(families(term) or word in _VERBS_OR_NOUNS for word, term in said[:_LOOKED_AT])
    return doing and len(said) >= FEWEST_WORDS
