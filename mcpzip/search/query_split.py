"""Splitting a query that has several information needs: "read the file and post it to Slack" has two.

The rule: a query is split at the end of a sentence or of a line of a list, at "then", and at an "and" or a
comma before a verb. A part without a verb, or with one word only (stop words don't count), is no need of its
own and is joined to the part before it.
"""

import re
from collections.abc import Iterator

from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.search.tokenizer import is_stop_word, words
from mcpzip.search.verbs import families

MAX_NEEDS = 6  # a query with more is a document, and is not split
MIN_NEED_WORDS = 2  # without stop words: "and send it" belongs to the part before it

_SENTENCE = lazy_pattern(
    r"(?<=[a-zA-Z)\]\"'][.!?])\s+(?=[A-Z\d\"'(])|[。！？；]|\n+\s*(?:[-*•]|\d+[.)])?\s*|;\s+"
)
_CONJUNCTION = lazy_pattern(
    r",?\s+(?:and\s+)?(?:then|afterwards|after that|finally|next|also),?\s+|,\s+(?:and\s+)?|\s+and\s+",
    re.IGNORECASE,
)
_THEN = lazy_pattern(r"\b(?:then|afterwards|after that|finally|next|also)\b", re.IGNORECASE)
_SPACES = lazy_pattern(r"[^\S\n]+")
_MAX_LENGTH = 4_000  # characters
# Words that are a verb where an object follows: "and email it to Anna" is a need, "name and email of" is not.
_VERBS = """
ask block book buy call chart check clean email export file fix flag let log mail message note notify order
pay ping plan plot remind rent reserve schedule sort subscribe summarise summarize tag tell text warn
"""
_DETERMINERS = """
a an all any each every her him it me my our that the their them this those us you your
"""
_VERBS_OR_NOUNS = frozenset(_VERBS.split())
_OBJECT_STARTS = frozenset(_DETERMINERS.split())
_VERB_WITHIN = 3  # first words of a part, one of which must be its verb


def split_query(text: str) -> tuple[str, ...]:
    """The needs in ``text``, in order; () where it has only one, or more than `MAX_NEEDS`."""
    if len(text) > _MAX_LENGTH:
        return ()
    parts: list[str] = []
    for part in _parts(_SPACES.sub(" ", text)):
        if parts and not _is_need(part):
            parts[-1] += " " + part
        else:
            parts.append(part)
    if len(parts) > 1 and not _is_need(parts[0]):
        parts[:2] = [f"{parts[0]} {parts[1]}"]
    return tuple(parts) if 2 <= len(parts) <= MAX_NEEDS else ()


def _parts(text: str) -> Iterator[str]:
    for sentence in _SENTENCE.split(text):
        start = 0
        for match in _CONJUNCTION.finditer(sentence):
            if _THEN.search(match[0]) or _begins_with_verb(sentence[match.end() : match.end() + 64]):
                if sentence[start : match.start()].strip():
                    yield sentence[start : match.start()].strip()
                start = match.end()
        if sentence[start:].strip():
            yield sentence[start:].strip()


def _begins_with_verb(part: str) -> bool:
    first = words(part)[:2]
    if not first:
        return False
    if families(first[0][1]):
        return True
    return len(first) == 2 and first[0][0] in _VERBS_OR_NOUNS and first[1][0] in _OBJECT_STARTS


def _is_need(part: str) -> bool:
    content = [pair for pair in words(part) if not is_stop_word(pair)]
    has_verb = any(families(term) or word in _VERBS_OR_NOUNS for word, term in content[:_VERB_WITHIN])
    return has_verb and len(content) >= MIN_NEED_WORDS
