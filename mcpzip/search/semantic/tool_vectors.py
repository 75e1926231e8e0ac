"""Embeddings of tools: which texts of a tool its vector is computed from.

The rule: queries mostly describe what a tool does, as its name and its first sentence do; so these have the
highest weights. The weights were fitted on queries for servers that the table was not trained on
(`tools/semantic`).
"""

import re

from mcpzip.search.fields import Fields
from mcpzip.search.semantic.table import Table, weighted_sum
from mcpzip.search.semantic.vectors import packed
from mcpzip.search.tokenizer import words

NAME_WEIGHT = 0.5
SERVER_WEIGHT = 0.3
DESCRIPTION_WEIGHT = 0.5
SUMMARY_WEIGHT = 1.0
PARAMETERS_WEIGHT = 0.1

WEIGHTS = (NAME_WEIGHT, SERVER_WEIGHT, DESCRIPTION_WEIGHT, SUMMARY_WEIGHT, PARAMETERS_WEIGHT)

_DESCRIPTION_WORDS = 60
_PARAMETER_WORDS = 40
_SENTENCE = re.compile(r".{15,}?[.!?](?=\s|$)", re.DOTALL)


class ToolEmbedder:
    """Computes the vectors of tools with a table of word vectors."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __contains__(self, word: str) -> bool:
        """Whether the table has ``word``; a word that it lacks is a rare word."""
        return word in self._table

    def vector(self, fields: Fields) -> bytes | None:
        """The packed vector of the tool with these fields; None where the table has none of its words."""
        name = spaced(fields.name)
        server = spaced(fields.server)
        description = fields.description.lower().split()[:_DESCRIPTION_WORDS]
        text = " ".join(description)
        sentence = _SENTENCE.match(text)
        embed = self._table.embed
        parts = (
            (NAME_WEIGHT, embed(name)),
            (SERVER_WEIGHT, embed(f"{server} {name}")),
            (DESCRIPTION_WEIGHT, embed(f"{name} {text}")),
            (SUMMARY_WEIGHT, embed(f"{name} {sentence[0] if sentence else text}")),
            (PARAMETERS_WEIGHT, embed(" ".join(spaced(fields.parameters).split()[:_PARAMETER_WORDS]))),
        )
        vector = weighted_sum(parts, self._table.dimension)
        return packed(vector) if any(vector) else None


def spaced(name: str) -> str:
    """The words of ``name``, folded and in lower case, separated by spaces."""
    return " ".join([word for word, _ in words(name)])
