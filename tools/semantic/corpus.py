"""The corpus: short texts of what things do, and of what people say.

Input: the packages of `sources.SOURCES` (got if they are not there) and the standard library.
Output: `DIR/corpus/SOURCE.txt`, one text a line, ASCII, none twice in all the files; and
`DIR/corpus/words.txt`, the words that occur in at least `WORD_TEXTS` of the texts, one a line.

A pair of a name and its text becomes one or two texts in the forms of `_forms`; which, is decided by a
checksum, so that a run repeats itself. Files that are there are kept.
"""

import argparse
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mcpzip.search.fields import first_sentence
from tools.semantic import readers
from tools.semantic.sources import SOURCES, Source, archive, file_name
from tools.semantic.texts import cut, name_words

WORD_TEXTS = 8
_LONGEST = 45  # words
_TWO = ("aws", "google", "openapi", "home_assistant")  # readers whose pairs become two texts
_SPOKEN = ("wordnet",)  # readers whose names are words already


def _forms(name: str, text: str, spoken: bool) -> list[str]:
    """The forms in which a pair can be a text, the order decided by its checksum."""
    sentence = first_sentence(text)
    words = name if spoken else name_words(name)
    if not words:
        return [cut(text, _LONGEST)]
    if spoken:
        forms = [f"{words}: {text}", text, f"{words}: {text}", words]
    else:
        forms = [
            f"{words}. {cut(text, _LONGEST)}",
            sentence,
            f"{words}. {sentence}",
            cut(text, _LONGEST),
            words,
        ]
    start = zlib.crc32(f"{name}|{text}".encode()) % len(forms)
    return forms[start:] + forms[:start]


def texts_of(source: Source, path: Path) -> Iterator[str]:
    count = 2 if source.reader in _TWO else 1
    for name, text in getattr(readers, source.reader)(path):
        if (
            text.isascii()
            and len(text.split()) >= (2 if name else 1)
            and not text.startswith((">>>", "..", "@"))
        ):
            yield from _forms(name, text, source.reader in _SPOKEN)[:count]


def thin(texts: list[str], most: int) -> list[str]:
    """At most `most` of the texts, those with the smallest checksums, in their order."""
    if len(texts) <= most:
        return texts
    edge = sorted(zlib.crc32(t.encode()) for t in texts)[most - 1]
    return [t for t in texts if zlib.crc32(t.encode()) <= edge]


def write(work: Path) -> None:
    """Write the files that are not there."""
    folder = work / "corpus"
    folder.mkdir(parents=True, exist_ok=True)
    packages = work / "packages"
    seen: set[str] = set()
    for source in SOURCES:
        target = folder / f"{file_name(source)}.txt"
        if not target.exists():
            path = archive(source, packages)
            found = dict.fromkeys(t for t in texts_of(source, path) if t.lower() not in seen and len(t) > 3)
            chosen = thin(list(found), source.most)
            _save(target, chosen)
            print(f"{target.name}: {len(chosen)} of {len(found)} texts", flush=True)
        seen.update(t.lower() for t in target.read_text("ascii").splitlines())
    words = folder / "words.txt"
    if not words.exists():
        counts = Counter[str]()
        for text in sorted(seen):
            counts.update(set(re.findall(r"[a-z][a-z0-9]+", text)))
        _save(words, sorted(w for w, n in counts.items() if n >= WORD_TEXTS and w not in seen))


def _save(target: Path, texts: list[str]) -> None:
    partial = target.with_suffix(".partial")
    partial.write_text("".join(t + "\n" for t in texts), "ascii")
    partial.replace(target)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    write(parser.parse_args().work)
