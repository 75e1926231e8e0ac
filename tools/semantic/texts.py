"""How a text is cleaned and cut, the same way for the corpus, the tools and the requests (pure)."""

import html
import re

_TAG = re.compile(r"<[^>]{0,300}>")
_ADDRESS = re.compile(r"https?://\S+")
_ROLE = re.compile(r":[a-z:]+:`([^`]*)`")
_LINK = re.compile(r"\[([^\[\]]+)\]\([^()\s]*\)?")
_MARK = re.compile(r"[`*|]+")
_SPACE = re.compile(r"\s+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NO_WORD = re.compile(r"[^A-Za-z0-9]+")


def clean(text: str) -> str:
    """The text on one line, without mark-up and addresses."""
    text = html.unescape(_TAG.sub(" ", text))
    text = _LINK.sub(r"\1", _ADDRESS.sub("", text))
    text = _ROLE.sub(lambda m: m.group(1).rsplit(".", 1)[-1], text)
    return _SPACE.sub(" ", _MARK.sub(" ", text)).strip()


def name_words(name: str) -> str:
    """`getUserList`, `get_user-list` → `get user list`."""
    return _NO_WORD.sub(" ", _HUMP.sub(" ", name)).strip().lower()


def cut(text: str, words: int) -> str:
    return " ".join(text.split()[:words])
