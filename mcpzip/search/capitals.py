"""Capital letters in a text, which tell names of people, places and projects from words (pure)."""

from collections.abc import Iterator

EDGES = ".,;:!?…()[]{}<>*'’‘\"“”„«»`~"
"""Punctuation around words."""
_SENTENCE_END = (".", "!", "?", ":", "…")


def capitalised(text: str) -> Iterator[tuple[str, str, bool]]:
    """Of each string of ``text`` between white space: the string as written; the same without the punctuation
    around it; whether it has a capital letter other than that which begins a sentence.
    """
    starts = True
    for written in text.split():
        bare = written.strip(EDGES)
        letters = bare[1:] if starts else bare
        yield written, bare, letters != letters.lower()
        starts = written.endswith(_SENTENCE_END)
