"""Phrase search: documents in which words follow one another.

The rule: the index gives the documents that have all the words; only the texts of these are searched.
"""

from mcpzip.model.entry import Entry
from mcpzip.search.index import Index
from mcpzip.search.tokenizer import is_stop_word, words


def documents_with_phrase(index: Index, phrase: tuple[str, ...]) -> set[int]:
    """The documents whose name, title or description has the terms of ``phrase`` one after the other."""
    ids = [index.term_id(term) for term in phrase if not is_stop_word((term, term))]
    terms = sorted((term for term in ids if term is not None), key=index.document_frequency)
    if not terms or len(terms) < len(ids):
        return set()
    found = {document for document, _ in index.postings_of(terms[0])}
    for term in terms[1:]:
        found &= {document for document, _ in index.postings_of(term)}
    return {document for document in found if _has_phrase(index.document(document).entry, phrase)}


def _has_phrase(entry: Entry, phrase: tuple[str, ...]) -> bool:
    for text in (entry.name, entry.title, entry.description):
        terms = [term for _, term in words(text)]
        if any(tuple(terms[start : start + len(phrase)]) == phrase for start in range(len(terms))):
            return True
    return False
