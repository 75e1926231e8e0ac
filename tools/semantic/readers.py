"""What is taken out of an archive of the corpus: pairs of a name and what it does.

The rule: a reader knows one form of archive and yields `(name, text)`; the name is empty where there is none.
What becomes of the pairs is `corpus`'s business. A reader that samples takes its seed from the archive's own
texts, so that a second run yields the same.
"""

import ast
import gzip
import io
import json
import random
import re
import subprocess
import sysconfig
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tools.semantic.templates import Templates
from tools.semantic.texts import clean

Pairs = Iterator[tuple[str, str]]
_NOT_PUBLIC = re.compile(
    r"(^|/)(tests?|testing|_vendor|vendored|_internal|idlelib|lib2to3)/|(^|/)test_|_test\.py$"
)
_TAXON = re.compile(
    r"\b(genus|family|order|species|plant|tree|herb|shrub|bird|fish|insect|mammal|fungus|moth)\b"
)


def aws(path: Path) -> Pairs:
    """botocore: the operations of the newest model of each service."""
    with zipfile.ZipFile(path) as wheel:
        newest: dict[str, str] = {}
        for entry in sorted(wheel.namelist()):
            found = re.match(r"botocore/data/([^/]+)/[^/]+/service-2\.json(\.gz)?$", entry)
            if found:
                newest[found.group(1)] = entry
        for entry in newest.values():
            raw = wheel.read(entry)
            model = json.loads(gzip.decompress(raw) if entry.endswith(".gz") else raw)
            for name, operation in model["operations"].items():
                yield name, clean(operation.get("documentation", ""))


def _methods(resource: dict) -> Iterator[dict]:
    yield from (resource.get("methods") or {}).values()
    for inner in (resource.get("resources") or {}).values():
        yield from _methods(inner)


def google(path: Path) -> Pairs:
    """google-api-python-client: the methods in its discovery cache, of stable versions if there are."""
    with zipfile.ZipFile(path) as wheel:
        best: dict[str, tuple[bool, str]] = {}
        for entry in sorted(wheel.namelist()):
            found = re.match(r"googleapiclient/discovery_cache/documents/(.+?)\.([^/]+)\.json$", entry)
            if found:
                rank = (not re.search("alpha|beta", found.group(2)), entry)
                best[found.group(1)] = max(best.get(found.group(1), (False, "")), rank)
        for _, entry in best.values():
            for method in _methods(json.loads(wheel.read(entry))):
                last = method.get("id", "").split(".")[-2:]
                yield " ".join(reversed(last)), clean(method.get("description", ""))


def openapi(path: Path) -> Pairs:
    """An npm package with OpenAPI documents: the operations of the first one."""
    with tarfile.open(path) as package:
        member = package.extractfile("package/generated/api.github.com.json")
        assert member is not None
        document = json.load(member)
    for item in document["paths"].values():
        for operation in item.values():
            if isinstance(operation, dict) and "operationId" in operation:
                name = operation["operationId"].split("/")[-1]
                yield name, clean(operation.get("summary", "") + ". " + operation.get("description", ""))


def docstrings(path: Path) -> Pairs:
    """A wheel: the first paragraph of the docstring of each public function and class."""
    with zipfile.ZipFile(path) as wheel:
        for entry in sorted(wheel.namelist()):
            if entry.endswith(".py") and not _NOT_PUBLIC.search(entry):
                yield from _documented(wheel.read(entry))


def standard_library(_: Path) -> Pairs:
    """The docstrings of the Python that runs this."""
    root = Path(sysconfig.get_path("stdlib"))
    for file in sorted(root.rglob("*.py")):
        inner = file.relative_to(root).as_posix()
        if not inner.startswith(("site-packages/", "dist-packages/", "config-")) and not _NOT_PUBLIC.search(
            inner
        ):
            yield from _documented(file.read_bytes())


def _documented(source: bytes) -> Pairs:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return  # templates and files of other Pythons
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name.startswith("_"):
                continue
            text = ast.get_docstring(node)
            if text:
                yield node.name, clean(text.split("\n\n")[0])


def home_assistant(path: Path) -> Pairs:
    """Home Assistant: its integrations' services and what they do."""
    with zipfile.ZipFile(path) as wheel:
        for entry in sorted(wheel.namelist()):
            if entry.endswith("/strings.json"):
                for key, service in json.loads(wheel.read(entry)).get("services", {}).items():
                    text = service.get("description", "")
                    if "[%" not in text:
                        yield key, clean(text)


def home_intents(path: Path) -> Pairs:
    """Home Assistant's sentences for voice, of each template some."""
    with zipfile.ZipFile(path) as wheel:
        document = json.loads(wheel.read("home_assistant_intents/data/en.json"))
    slots = {
        name: [_plain(v["in"]) if isinstance(v, dict) else _plain(v) for v in content["values"]]
        for name, content in document["lists"].items()
        if "values" in content
    }
    templates = Templates(document["expansion_rules"], slots, random.Random(7))
    for intent in document["intents"].values():
        for block in intent["data"]:
            for sentence in block["sentences"]:
                for text in templates.some(sentence, 6):
                    yield "", text


def _plain(template: str) -> str:
    return re.sub(r"[\[\]()]|\|.*", "", template).strip()


def voice_skill(path: Path) -> Pairs:
    """A skill of Open Voice OS: its English sentences."""
    with zipfile.ZipFile(path) as wheel:
        for entry in sorted(wheel.namelist()):
            if re.search(r"/en-us/.*\.intent$", entry, re.IGNORECASE):
                templates = Templates({}, {}, random.Random(7))
                for line in wheel.read(entry).decode("utf-8", "replace").splitlines():
                    if line.strip() and not line.startswith("#"):
                        for text in templates.some(line.strip(), 12):
                            yield "", text


def dialogues(path: Path) -> Pairs:
    """chatterbot-corpus: what is said in its English conversations."""
    with zipfile.ZipFile(path) as wheel:
        for entry in sorted(wheel.namelist()):
            if "/english/" in entry and entry.endswith(".yml"):
                for line in wheel.read(entry).decode("utf-8", "replace").splitlines():
                    found = re.match(r"\s*-\s+(?:-\s+)?['\"]?(.+?)['\"]?$", line)
                    if found:
                        yield "", clean(found.group(1))


def wordnet(path: Path) -> Pairs:
    """WordNet: its synsets with their glosses, and the examples."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["dpkg-deb", "-x", str(path), folder], check=True)
        for part in ("noun", "verb", "adj", "adv"):
            data = (Path(folder) / "usr/share/wordnet" / f"data.{part}").read_text("latin-1")
            for line in io.StringIO(data):
                if not line.startswith("  "):
                    yield from _synset(line, part)


def _synset(line: str, part: str) -> Pairs:
    head, gloss = line.split("|", 1)
    fields = head.split()
    lemmas = [re.sub(r"\(.*", "", fields[4 + 2 * i]).replace("_", " ") for i in range(int(fields[3], 16))]
    definition = re.sub(r'"[^"]*"?', "", gloss).strip(" ;\n")
    if part == "noun" and (lemmas[0][:1].isupper() or _TAXON.search(definition)):
        return
    yield ", ".join(lemmas[:4]), definition
    for example in re.findall(r'"([^"]{12,})"', gloss):
        yield "", example
