"""What the tests of search have in common: tools, catalogs of few words, and a table of word vectors."""

import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from random import Random

from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.search import Filters, Results, Searcher
from mcpzip.search.analysis import Analyzer
from mcpzip.search.index import Index
from mcpzip.search.packed_matrix import INT4
from mcpzip.search.semantic.table import MAGIC, Table
from mcpzip.search.semantic.vectors import packed

DIMENSION = 16


def tool(server: str, name: str, description: str = "", **more: object) -> Entry:
    """A tool; ``more`` are further fields of its JSON."""
    return Entry.parse(server, json.dumps({"name": name, "description": description, **more}).encode())


def index_of(*entries: Entry) -> Index:
    """An index of words alone."""
    return Index().updated(entries, Analyzer(None))


def searcher(*entries: Entry, table: Table | None = None) -> Searcher:
    made = Searcher(table)
    made.index(entries, "1")
    return made


def names(results: Results) -> list[str]:
    return [hit.entry.name for hit in results.hits]


def found(made: Searcher, query: str, limit: int = 10, filters: Filters | None = None) -> list[str]:
    """The names of what ``made`` finds."""
    return names(made.search(query, limit, filters or Filters()))


def table_bytes(
    rows: Mapping[str, Sequence[float]], dimension: int = DIMENSION, *, hidden: int = 0, layer: bytes = b""
) -> bytes:
    """A file as `mcpzip.search.semantic.table` describes it."""
    vocabulary = zlib.compress("\n".join(rows).encode())
    head = struct.pack("<IHHI", len(rows), dimension, hidden, len(vocabulary))
    return MAGIC + head + vocabulary + b"".join(packed(row) for row in rows.values()) + layer


def layer_bytes(
    into: Sequence[Sequence[int]],
    bias: Sequence[float],
    out: Sequence[Sequence[int]],
    scales: Sequence[float],
    out_scales: Sequence[float],
) -> bytes:
    """A layer as `mcpzip.search.semantic.query_layer` describes it. Weights: −7…7."""
    floats = [*scales, *bias, *out_scales]
    weights = [weight + INT4.zero_point for row in (*into, *out) for weight in row]
    halves = bytes(low | high << 4 for low, high in zip(weights[::2], weights[1::2], strict=True))
    return struct.pack(f"<{len(floats)}f", *floats) + halves


def table_of(directory: Path, rows: Mapping[str, Sequence[float]]) -> Table:
    path = directory / "words.bin"
    path.write_bytes(table_bytes(rows))
    return Table(path)


def concepts(*groups: str) -> dict[str, list[float]]:
    """Rows for words: those of one group mean the same, those of two have nothing in common."""
    return {
        word: [float(place == number) for place in range(DIMENSION)]
        for number, group in enumerate(groups)
        for word in group.split()
    }


def scattered(words: Iterable[str]) -> dict[str, list[float]]:
    """Rows for words that all mean something else, but nothing wholly else."""
    return {word: [byte - 127.5 for byte in blake2b(word.encode()).digest()[:DIMENSION]] for word in words}


# Few words, so that tools and queries meet: verbs of several families, inflections, words that join to
# others, stop words, a script without spaces.
SPELLED = [
    "get",
    "list",
    "delete",
    "send",
    "user",
    "users",
    "message",
    "messages",
    "git",
    "hub",
    "github",
    "file",
    "mail",
    "the",
    "who",
    "id",
]
STRANGE = [
    "mesage",
    "slakc",
    "gihtub",
    "zebra",
    "quokka",
    "messagelist",
    "remove",
    "fil",
    "天气",
    "datei",
    "?",
]
SERVERS = ["git", "slack", "mail-box"]


def sentences(words: Sequence[str], longest: int) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(words), max_size=longest).map(" ".join)


def _hinted(server: str, name: str, description: str, parameter: str) -> Entry:
    return tool(
        server,
        name,
        description,
        inputSchema={"properties": {parameter: {"type": "string"}}},
        annotations={"readOnlyHint": name.startswith(("list", "get"))},
    )


def _some_of_few_words(count: int) -> list[Entry]:
    """Tools made up of the words above, always the same: drawing from them is cheaper than drawing words."""
    random = Random(7)
    return [
        _hinted(
            random.choice(SERVERS),
            "_".join(random.choices(SPELLED, k=random.randint(1, 3))),
            " ".join(random.choices([*SPELLED, "slack", "天气预报"], k=random.randint(0, 6))),
            random.choice(["user_id", "path", "text"]),
        )
        for _ in range(count)
    ]


tools = st.sampled_from(_some_of_few_words(600))
catalogs = st.lists(tools, max_size=8, unique_by=lambda entry: entry.name)
signs = st.sampled_from(["", "", "", " server:git", " -list", ' "get user"', " server:nowhere"])
queries = st.builds(lambda text, sign: text + sign, sentences([*SPELLED, *STRANGE, "slack"], 5), signs)
filters = st.builds(
    Filters, st.sampled_from([None, None, "slack", "nowhere"]), st.sampled_from([None, None, True, False])
)
