"""Splitting a query that has several information needs: "read the file and post it to Slack" has two (pure).

The rule: a query is split where its grammar says that another request begins: at the end of a sentence or of
a line of a list, at "then", and at a comma, an "and" or a word such as "before" if a verb, a question or
"I need" comes next. A verb is one of `verbs`, or any word before "the", "my", "it" and the like that isn't a
preposition or a pronoun: "chart the sales". A part is joined to the one before it if it has one word only
(stop words don't count), if it restricts that one ("only the counts", "don't start it"), or if that one is a
statement and it is a request with a pronoun ("the bucket is empty, get rid of it"). What each part is worth
is for `needs` to say, which also tries the `halves` of a part.
"""

import re
from collections.abc import Iterator
from itertools import islice

from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.search.tokenizer import is_stop_word, words
from mcpzip.search.verbs import families

MAX_NEEDS = 8  # a query with more is a document, and is not split; 6: −.002 of tasks' R@5
MIN_NEED_WORDS = 2  # without stop words: "and send it" belongs to the part before it; 3: −.03
VERB_DISTANCE = 9  # words after a verb, beyond which another object isn't the verb's

_SENTENCE = lazy_pattern(
    r"(?<=[a-zA-Z0-9)\]\"'][.!?])(?<!\b(?:Dr|Mr|Ms|No|St|vs)\.)(?<!\bMrs\.)\s+(?=[A-Z\d\"'(])"
    r"|[。！？；]|\n+\s*(?:[-*•]|\d+[.)])?\s*|;\s+"
)
_CONJUNCTION = lazy_pattern(
    r"[,:]?\s+(?:(?:and|but)\s+)?(?:then|afterwards|after that|after which|finally|followed by|lastly|"
    r"additionally|in addition|also|as well as|next|plus|so that|before|after|once|while),?\s+"
    r"|,\s+(?:(?:and|but|or)\s+)?|\s+(?:and|but|&|\+)\s+",
    re.IGNORECASE,
)
_THEN = lazy_pattern(
    r"\b(?:then|afterwards|after that|after which|finally|followed by|lastly|additionally)\b", re.IGNORECASE
)
_RESTRICTION = lazy_pattern(
    r",?\s+but\s+(?:please\s+)?(?:(?:do not|don[’']?t)(?! forget)|exclude|ignore|keep|leave|never|not|only"
    r"|skip|without)\b",
    re.IGNORECASE,
)
_FRAGMENT = lazy_pattern(
    r"\d|(?:along with|at most|but|(?:do not|don[’']?t)(?! forget)|just the|max|never|no|not|only|whether"
    r"|with|without|(?:the )?(?:first|last) \d+)\b",
    re.IGNORECASE,
)
_PLACE = lazy_pattern(r"(?:at|for|from|in|inside|of|on|to|under|with|within)\b", re.IGNORECASE)
_PRONOUN = lazy_pattern(r"\b(?:it|its|them|they)\b", re.IGNORECASE)
_QUESTION = lazy_pattern(
    r"(?:(?:and|so)\s+)?(?:any|are|can|could|did|do|does|has|have|how|is|was|were|what|whats|when|where|which"
    r"|who|why)\b",
    re.IGNORECASE,
)
_LIST = lazy_pattern(r",\s+(?:and\s+)?|\s+(?:and|as well as|plus|&)\s+", re.IGNORECASE)
_LEADING = lazy_pattern(
    r"(?:(?:and|also|first|finally|just|kindly|next|now|please|so|then|to|i can|we can|you can|you)\b,?\s*)+",
    re.IGNORECASE,
)
_REQUEST = lazy_pattern(
    r"(?:can|could|would|will) you\b|(?:i|we) (?:need|want|would|also|must|have to)\b|(?:i|we)'d\b"
    r"|let(?:'s| me| us)\b|help (?:me|us)\b|give me\b|any\b|(?:is|are) there\b"
    r"|(?:how|what|what's|when|where|which|who)\b",
    re.IGNORECASE,
)
_STATEMENT = lazy_pattern(
    r"(?:a|an|he|her|here|his|i|it|its|my|one|our|she|some(?:body|one)|that|the|their|there|these|they|this"
    r"|those|upon|we|you|your)\b",
    re.IGNORECASE,
)
_SPACES = lazy_pattern(r"[^\S\n]+")
_MAX_LENGTH = 4_000  # characters
_MAX_HALVED = 600  # characters of a part that may have halves
_MAX_PLACES = 16  # commas and "and"s in it
_START = 80  # characters of a part that say how it begins
_DETERMINERS = """
a all an any both each every her him his it its me my our some that the their them these this those
us you your
"""
_NO_VERBS = """
about above across after against all also am among and any are around as at be because been before behind
being below between both but by can could did do does during each either even every except for from had has
have he her his how i if in including into is its just less like may might minus more most must my near
neither no nor not of on onto only or other our over per plus shall she should since so some such than that
their these they this those through to too under until very via was we were what when where whether which
while who whose will with within without would yet you your
"""
_OBJECT_STARTS = frozenset(_DETERMINERS.split())
_NEVER_VERBS = frozenset(_NO_VERBS.split())


def split_query(text: str) -> tuple[str, ...]:
    """The parts of ``text`` that may be needs, in order; () where there is one, or more than `MAX_NEEDS`."""
    if len(text) > _MAX_LENGTH:
        return ()
    parts: list[str] = []
    asked = False  # whether the last one is a request, and no statement
    for part in _parts(_SPACES.sub(" ", text)):
        asks = _begins_request(part[:_START])
        if parts and (not _is_long_enough(part) or _belongs(parts[-1], asked, part, asks)):
            parts[-1] += " " + part
            asked = asked or asks
        else:
            parts.append(part)
            asked = asks
    if len(parts) > 1 and not _is_long_enough(parts[0]):
        parts[:2] = [f"{parts[0]} {parts[1]}"]
    return tuple(parts) if 2 <= len(parts) <= MAX_NEEDS else ()


def halves(part: str) -> Iterator[tuple[str, str]]:
    """``part`` in two at each of its commas and "and"s where both halves are long enough. The second
    half begins with the verb of the first if it has none: "list users" and "list open invoices" for "list
    users and open invoices".
    """
    if len(part) > _MAX_HALVED:
        return
    first, _, rest = part.partition(" ")
    verb = first + " " if rest and any(families(term) for _, term in words(first)) else ""
    for match in islice(_LIST.finditer(part), _MAX_PLACES):
        one, other = part[: match.start()].strip(), part[match.end() :].strip()
        if _FRAGMENT.match(other):
            continue
        if not _begins_request(other[:_START]) and one.count(" ") <= VERB_DISTANCE:
            other = verb + other
        if _is_long_enough(one) and _is_long_enough(other):
            yield one, other


def is_statement(part: str) -> bool:
    """Whether ``part`` rather says how things are than what to do: "we have a deadline on Friday"."""
    return not _REQUEST.match(part) and bool(_STATEMENT.match(part))


def _belongs(before: str, asked: bool, part: str, asks: bool) -> bool:
    """Whether ``part`` is about the same need as the part ``before``. asked, asks: whether ``before`` and
    ``part`` are requests, and no statements.
    """
    if _FRAGMENT.match(part):  # "only the counts", "don't start it yet"
        return True
    refers = _PRONOUN.search(part) is not None
    if refers and _QUESTION.match(before) and _QUESTION.match(part):
        return True  # "which machines are there, and are they ready?"
    return not asked and (_PLACE.match(before) is not None or (refers and asks))


def _parts(text: str) -> Iterator[str]:
    for sentence in _SENTENCE.split(text):
        start = 0
        for match in _CONJUNCTION.finditer(sentence):
            if _RESTRICTION.match(sentence, match.start()):
                continue  # "… but keep my edits" says how, not what else
            if _THEN.search(match[0]) or _begins_request(sentence[match.end() : match.end() + _START]):
                if part := sentence[start : match.start()].strip(" ,"):
                    yield part
                start = match.end()
        if part := sentence[start:].strip():
            yield part


def _begins_request(part: str) -> bool:
    """Whether ``part`` begins with a verb that asks for something, a question, or the like."""
    leading = _LEADING.match(part)
    part = part[leading.end() :] if leading else part
    if _REQUEST.match(part):
        return True
    first = words(part)[:2]
    if not first:
        return False
    word, term = first[0]
    if families(term):
        return True
    return word not in _NEVER_VERBS and len(first) == 2 and first[1][0] in _OBJECT_STARTS


def _is_long_enough(part: str) -> bool:
    content = 0
    for pair in words(part):
        content += not is_stop_word(pair)
        if content == MIN_NEED_WORDS:
            return True
    return False
