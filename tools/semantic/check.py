"""Shows that the table in the package is what these scripts make of their inputs.

`python -m tools.semantic.check` compares the tree with `manifest.json`, by the standard library alone: the
sha256 and size of the table and of the transformer's adapter, the sha256 of every file of requests, the pins
of all packages, and every number and seed in `settings`. `--full --work DIR` builds the table again and
compares the bytes. That must agree on the machine that made the table; on another one the sums of floats can
differ in their last bits, and then a few values of the rows differ by one step.

Exit code 0 if all agrees, 1 otherwise, with one line for each thing that doesn't.
"""

import argparse
import hashlib
import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from tools.semantic.settings import ADAPT, TRAIN, TRANSFORMER
from tools.semantic.sources import MODEL_SHA256, SOURCES, TOKENIZER, TOKENIZER_SHA256

HERE = Path(__file__).parent
TABLE = HERE.parent.parent / "mcpzip" / "search" / "semantic" / "words.bin"
ADAPTER = HERE.parent.parent / "mcpzip" / "search" / "remote" / "minilm_adapter.bin"
MANIFEST = HERE / "manifest.json"
MOST_BYTES = 5_900_000


def digest(file: Path) -> str:
    """The sha256 of a file; of a text the line ends don't count."""
    raw = file.read_bytes()
    return hashlib.sha256(raw if file.suffix == ".bin" else raw.replace(b"\r\n", b"\n")).hexdigest()


def inputs() -> dict[str, object]:
    """What the tree says now of what the table is made of and with."""
    files = [*sorted(HERE.glob("requests/*.tsv")), HERE / "requirements.txt"]
    return {
        "files": {f.relative_to(HERE).as_posix(): digest(f) for f in files},
        "packages": {s.package: s.version for s in (TOKENIZER, *SOURCES)},
        "teacher": {"model.onnx": MODEL_SHA256, "tokenizer.json": TOKENIZER_SHA256},
        "adapt": asdict(ADAPT),
        "train": asdict(TRAIN),
    }


def manifest(table: Path, corpus: Path, figures: Mapping[str, str]) -> dict[str, object]:
    """What is recorded of a build."""
    return {
        "table": {"sha256": digest(table), "bytes": table.stat().st_size},
        "inputs": inputs(),
        "corpus": {f.name: [digest(f), f.read_bytes().count(b"\n")] for f in sorted(corpus.glob("*.txt"))},
        "held out, R@1/R@5": dict(figures),
        "made on": f"Python {platform.python_version()}, {platform.system()} {platform.machine()}",
    }


def adapter_record(adapter: Path) -> dict[str, object]:
    """What is recorded of the transformer's adapter: the file, and what the tree says of its inputs."""
    requests = "".join(digest(file) for file in sorted(HERE.glob("requests/*.tsv")))
    return {
        "sha256": digest(adapter),
        "bytes": adapter.stat().st_size,
        "requests": hashlib.sha256(requests.encode()).hexdigest(),
        "settings": asdict(TRANSFORMER),
    }


def faults(recorded: Mapping[str, object], table: Path, adapter: Path) -> list[str]:
    """What doesn't agree with the manifest, a sentence each."""
    found: list[str] = []
    if recorded["adapter"] != adapter_record(adapter):
        found.append(
            f"{adapter.name}, its requests or settings are not those of the manifest; run "
            "tools.semantic.transformer --install."
        )
    raw = table.read_bytes()
    stated = recorded["table"]
    assert isinstance(stated, dict)
    if stated != {"sha256": digest(table), "bytes": len(raw)}:
        found.append(f"{table.name} is not the table of the manifest; run tools.semantic.build --install.")
    if len(raw) > MOST_BYTES:
        found.append(f"{table.name} has {len(raw)} bytes; {MOST_BYTES} are the most.")
    now = inputs()
    then = recorded["inputs"]
    assert isinstance(then, dict)
    for part, content in now.items():
        stated = then[part]
        assert isinstance(content, dict)
        found.extend(
            f"{part}: {key} is not as it was for the table; run tools.semantic.build --install."
            for key in sorted(content.keys() | stated.keys())
            if content.get(key) != stated.get(key)
        )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="build it again in --work and compare the bytes")
    parser.add_argument("--work", type=Path)
    arguments = parser.parse_args()
    found = faults(json.loads(MANIFEST.read_text("utf-8")), TABLE, ADAPTER)
    if arguments.full:
        if arguments.work is None:
            parser.error("--full needs --work DIR")
        from tools.semantic import build

        build.build(arguments.work, install=False)
        if digest(arguments.work / "words.bin") != digest(TABLE):
            found.append("A new build differs from the table in the package.")
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
