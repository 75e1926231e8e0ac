"""Embeddings of tools: which texts of a tool its vector is computed from.

The rule: queries mostly describe what a tool does, as its name and its first sentence do; so these have the
highest weights. The weights were fitted on queries for servers that the table was not trained on
(`tools/semantic`).
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache

from mcpzip.search.fields import Fields, first_sentence
from mcpzip.search.packed_matrix import INT4, PackedMatrix
from mcpzip.search.semantic.lanes import Sum, weighted
from mcpzip.search.semantic.table import Table, words_of
from mcpzip.search.semantic.vectors import unpacked
from mcpzip.search.tokenizer import words

NAME_WEIGHT = 0.5
SERVER_WEIGHT = 0.3
DESCRIPTION_WEIGHT = 0.5
SUMMARY_WEIGHT = 1.0
PARAMETERS_WEIGHT = 0.1

WEIGHTS = (NAME_WEIGHT, SERVER_WEIGHT, DESCRIPTION_WEIGHT, SUMMARY_WEIGHT, PARAMETERS_WEIGHT)

_DESCRIPTION_WORDS = 60
_PARAMETER_WORDS = 40
_CACHED_SERVERS = 4096


class ToolEmbedder:
    """Computes the vectors of tools with a table of word vectors."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.server_vector = lru_cache(_CACHED_SERVERS)(self._server_vector)
        """The packed vector of the name of a server; None where the table has none of its words. Cached,
        because servers stay when their tools change."""

    @property
    def dimension(self) -> int:
        """The number of dimensions of vectors."""
        return self._table.dimension

    def unknown(self, words: Iterable[str]) -> int:
        """How many of the distinct ``words`` the table lacks: the rare words."""
        return self._table.unknown(words)

    def vector(self, fields: Fields) -> bytes | None:
        """The packed vector of the tool with these fields; None where the table has none of its words."""
        name = spaced(fields.name)
        server = spaced(fields.server)
        description = fields.description.lower().split()[:_DESCRIPTION_WORDS]
        text = " ".join(description)
        sentence = first_sentence(text)
        table = self._table
        words = words_of(f"{name} {text}")
        # Both are the first words of the longest of the three texts.
        lengths = len(words_of(name)), len(words_of(f"{name} {sentence}")) if sentence != text else len(words)
        by_name, summary, whole = table.sums(words, (*lengths, len(words)))
        parts = (
            (NAME_WEIGHT, by_name),
            (SERVER_WEIGHT, self._sum(f"{server} {name}")),
            (DESCRIPTION_WEIGHT, whole),
            (SUMMARY_WEIGHT, summary),
            (PARAMETERS_WEIGHT, self._sum(" ".join(spaced(fields.parameters).split()[:_PARAMETER_WORDS]))),
        )
        return weighted(parts, table.dimension)

    def _server_vector(self, server: str) -> bytes | None:
        return weighted(((1.0, self._sum(spaced(server))),), self._table.dimension)

    def _sum(self, text: str) -> Sum | None:
        words = words_of(text)
        return self._table.sums(words, (len(words),))[0]


def spaced(name: str) -> str:
    """The words of ``name``, folded and in lower case, separated by spaces."""
    return " ".join([word for word, _ in words(name)])


class ServerVectors:
    """The vectors of the names of servers, made for the first query. Immutable; safe between threads."""

    def __init__(self, servers: Callable[[], Iterable[str]], embedder: ToolEmbedder) -> None:
        self._servers, self._embedder = servers, embedder

    def similarities(self, query: bytes) -> Mapping[str, float]:
        """The cosines of the quantized ``query`` with the names of servers that have a vector."""
        names, matrix = self._matrix
        return dict(zip(names, matrix.cosines(query), strict=True))

    @cached_property
    def _matrix(self) -> tuple[list[str], PackedMatrix]:
        embedder = self._embedder
        found = {
            server: unpacked(vector)
            for server in sorted(self._servers())
            if (vector := embedder.server_vector(server)) is not None
        }
        return list(found), PackedMatrix(list(found.values()), embedder.dimension, INT4)
