"""Paths of files in a query: "put it into /notes/trip.md" needs a tool that writes files, and doesn't say so
(pure).

The rule: the extension of a path says what kind of file is meant; its names say what is in it, which is no
tool's business. So a path is searched as its kind ("file", "excel file"). Where something is made or saved
and a path says where, writing a file of that kind is a need of its own: the tool that makes the content
seldom saves it.

What counts as a path: names with slashes or backslashes between or before them, the last with an extension
("~/a/b.md", "C:\\a.docx"). A single name with a common extension ("report.pdf") tells what is written, too,
but its words stay: a tool may be called after it ("update package.json").
"""

import re

from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.search.stemmer import stem
from mcpzip.search.tokenizer import is_stop_word, words
from mcpzip.search.verbs import READING, families, family

_EXTENSIONS = {
    "csv file": "csv tsv",
    "excel file": "ods xls xlsm xlsx",
    "word document": "doc docx odt rtf",
    "powerpoint presentation": "odp ppt pptx",
    "pdf": "pdf",
    "image": "bmp gif heic jpeg jpg png svg tif tiff webp",
    "audio file": "aac flac m4a mp3 ogg opus wav",
    "video": "avi m4v mkv mov mp4 webm",
    "archive": "7z bz2 gz rar tar tgz xz zip",
    "file": "bib htm html ini json log markdown md rst sql tex toml txt xml yaml yml",
}
"""Kinds of files, as queries and tools call them, and their extensions; any other extension is a "file"."""
_KINDS = {extension: kind for kind, extensions in _EXTENSIONS.items() for extension in extensions.split()}

_NAME = r"[\w.+~@-]{1,255}"
_PATH = lazy_pattern(
    r"(?<![\w/\\:.@~+-])(?:"
    rf"(?:~|\.{{1,2}}|[A-Za-z]:)?[/\\](?:{_NAME}[/\\]){{0,40}}{_NAME}\.[A-Za-z]\w{{0,4}}"
    rf"|(?:{_NAME}[/\\]){{0,40}}{_NAME}\.(?:{'|'.join(_KINDS)})"
    r")(?![\w/\\-]|\.\w)",
    re.IGNORECASE,
)
_SENTENCE_END = lazy_pattern(r"[.!?](?=\s)|\n")
_REACH = 400  # characters before a path in which its verb is sought

_MAKING = family("create") | family("save")
_ADDING = frozenset(map(stem, ("add", "append", "insert")))
"""Those of the verbs that make something inside a file that there is already."""
_STATES = frozenset(["are", "been", "had", "has", "have", "is", "was", "were"])
_PREPOSITIONS = frozenset(["as", "at", "in", "inside", "into", "on", "to", "under"])
"""Those between what is made and where it goes."""
_CONTENTS = """
both content contents csv data document everything file files final html information json markdown new output
overall report result results summary text
"""
_ARE_CONTENTS = frozenset(_CONTENTS.split())
"""Words for what is in a file, which say nothing about a tool."""


def without_paths(text: str) -> str:
    """``text`` with the kind of each file in place of its path."""
    return _PATH.sub(_searched, text) if _may_have_path(text) else text


def written_files(text: str) -> tuple[str, ...]:
    """The needs to write files that the paths in ``text`` imply, each once: "write file"."""
    if not _may_have_path(text):
        return ()
    made = (path for path in _PATH.finditer(text) if _is_made(text, path.start()))
    return tuple(dict.fromkeys(f"write {_kind(path[0])}" for path in made))


def only_says_where(part: str) -> bool:
    """Whether ``part`` says no more than that something goes into a file: "and save it to /notes/trip.md"."""
    if not _may_have_path(part):
        return False
    rest, count = _PATH.subn(" ", part)
    return count > 0 and all(
        is_stop_word((word, term)) or word in _ARE_CONTENTS or families(term) & _MAKING
        for word, term in words(rest)
    )


def _may_have_path(text: str) -> bool:
    return "." in text  # as the extension has one


def _kind(path: str) -> str:
    return _KINDS.get(path.rpartition(".")[2].lower(), "file")


def _searched(path: re.Match[str]) -> str:
    return _kind(path[0]) if "/" in path[0] or "\\" in path[0] else path[0]


def _is_made(text: str, start: int) -> bool:
    """Whether ``text`` asks for what goes to the path at ``start``: the last verb before it makes or saves
    something, and a preposition stands between them. Not where something goes into a file that is there
    already or "is saved" in it, nor where saving is all that is asked for: "save the selection to /a.pdb" is
    one tool's.
    """
    text = text[max(0, start - _REACH) : start]
    before = words(_SENTENCE_END.split(text)[-1])
    if not before or before[-1][0] not in _PREPOSITIONS:
        return False
    verbs = (
        pair for pair in reversed(before) if families(pair[1]) & (_MAKING | READING) and pair[0] != "new"
    )
    word, verb = next(verbs, ("", ""))
    if not families(verb) & _MAKING or verb in _ADDING:
        return False
    if word.endswith("ed") and not _STATES.isdisjoint(each for each, _ in before):
        return False
    content = [pair for pair in words(text) if not is_stop_word(pair)]
    only_saved = content[:1] and content[0][1] == verb and not families(verb) & family("create")
    return not only_saved or all(word in _ARE_CONTENTS for word, _ in content[1:])
