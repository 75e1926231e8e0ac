"""Makes `mcpzip/search/semantic/words.idx`, the index of the words in the table of word vectors beside it.

    python tools/row_index.py [--check]

--check: say whether the file is the one of the table (exit code 1 if not), and change nothing.
"""

import sys
import zlib
from pathlib import Path

from mcpzip.search.semantic.row_index import index_of
from mcpzip.search.semantic.table import FILE, HEAD, MAGIC

TABLE = Path(FILE)


def made(table: Path = TABLE) -> bytes:
    """The index of ``table``."""
    data = table.read_bytes()
    start = len(MAGIC) + HEAD.size
    *_, length = HEAD.unpack(data[len(MAGIC) : start])
    return index_of(zlib.decompress(data[start : start + length]).decode().split("\n"), zlib.crc32(data))


def main() -> int:
    index = TABLE.with_suffix(".idx")
    if sys.argv[1:] == ["--check"]:
        if index.exists() and index.read_bytes() == made():
            return 0
        print(f"{index} is not the index of {TABLE.name}; run `python tools/row_index.py`.")
        return 1
    index.write_bytes(made())
    return 0


if __name__ == "__main__":
    sys.exit(main())
