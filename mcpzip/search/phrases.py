"""Words that stand one after the other.

The rule: the index says which tools have all the words; only those are read for their order.
"""

from mcpzip.model.entry import Entry
from mcpzip.search.index import Index
from mcpzip.search.tokenizer import is_stop_word, words


def documents_with(index: Index, phrase: tuple[str, ...]) -> set[int]:
    """The documents in whose name, title or description the terms of ``phrase`` stand one after the other."""
    numbers = [index.number(term) for term in phrase if not is_stop_word((term, term))]
    terms = sorted((number for number in numbers if number is not None), key=index.frequency)
    if not terms or len(terms) < len(numbers):
        return set()
    found = {number for number, _ in index.postings_of(terms[0])}
    for term in terms[1:]:
        found &= {number for number, _ in index.postings_of(term)}
    return {number for number in found if _says(index.document(number).entry, phrase)}


def _says(entry: Entry, phrase: tuple[str, ...]) -> bool:
    for text in (entry.name, entry.title, entry.description):
        said = [term for _, term in words(text)]
        if any(tuple(said[start : start + len(phrase)]) == phrase for start in range(len(said))):
            return True
    return False
