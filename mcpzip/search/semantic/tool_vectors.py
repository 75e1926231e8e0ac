"""What of a tool its vector is made of.

The rule: a request says what a tool does, mostly as its name and its first sentence do; so those weigh most.
The weights were found on requests of servers that the table had not been trained on (`tools/semantic`).
"""

import re

from mcpzip.search.fields import Fields
from mcpzip.search.semantic.table import Table, mixed
from mcpzip.search.semantic.vectors import packed
from mcpzip.search.tokenizer import words

NAME = 0.5
SERVER = 0.3
DESCRIPTION = 0.5
SUMMARY = 1.0
PARAMETERS = 0.1

WEIGHTS = (NAME, SERVER, DESCRIPTION, SUMMARY, PARAMETERS)

_DESCRIPTION_WORDS = 60
_PARAMETER_WORDS = 40
_SENTENCE = re.compile(r".{15,}?[.!?](?=\s|$)", re.DOTALL)


class ToolEmbedder:
    """Gives tools their vectors, by a table of word vectors."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __contains__(self, word: str) -> bool:
        """Whether ``word`` is one that everybody may use."""
        return word in self._table

    def vector(self, fields: Fields) -> bytes | None:
        """The packed vector of the tool with these texts; None when the table knows none of its words."""
        name = spoken(fields.name)
        server = spoken(fields.server)
        description = fields.description.lower().split()[:_DESCRIPTION_WORDS]
        text = " ".join(description)
        sentence = _SENTENCE.match(text)
        embed = self._table.embed
        parts = (
            (NAME, embed(name)),
            (SERVER, embed(f"{server} {name}")),
            (DESCRIPTION, embed(f"{name} {text}")),
            (SUMMARY, embed(f"{name} {sentence[0] if sentence else text}")),
            (PARAMETERS, embed(" ".join(spoken(fields.parameters).split()[:_PARAMETER_WORDS]))),
        )
        vector = mixed(parts, self._table.dimension)
        return packed(vector) if any(vector) else None


def spoken(name: str) -> str:
    """``name`` as it is read out: its words, folded, in lower case."""
    return " ".join([word for word, _ in words(name)])
