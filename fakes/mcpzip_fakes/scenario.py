"""A scenario: a server, as data.

The rule: the behaviour of a fake is defined by its scenario alone. Wire data is stored as JSON text, so that
key order, unknown fields and the spelling of numbers are kept. An error is a `ScenarioError`: one sentence
with file and key.

    name = "shop"
    page_size = 2

    [[tools]]
    name = "pay"
    description = "Pay an invoice."
    inputSchema = '{"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}'
    result = { text = "Paid {id}.", fill = true, delay = 0.1 }

    [[faults]]
    kind = "crash"
    tool = "pay"
    nth = 2
    when = "middle"

A tool's table is its definition, sent unchanged except for ``result`` (an `Answer`). ``raw`` instead is the
whole definition as JSON text, sent byte for byte over stdio; it can be any JSON, so that invalid lists can be
tested.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import Struct

from mcpzip.wire import LEGACY_VERSIONS, MODERN_VERSIONS
from mcpzip_fakes.answer import Answer, Ask, JsonObject, Log, Notice, Refusal, Step, json_value
from mcpzip_fakes.definitions import ANY_OBJECT, Generate, Prompt, Resource, Tool, json_text
from mcpzip_fakes.errors import ScenarioError, scenario_error
from mcpzip_fakes.faults import Fault, option_keys
from mcpzip_fakes.made import Made
from mcpzip_fakes.oauth import settings
from mcpzip_fakes.oauth.settings import OAuth

if TYPE_CHECKING:
    from pathlib import Path  # imported only where it is needed, because a fake on stdio doesn't need it

ERAS: Mapping[str, tuple[str, ...]] = {
    "legacy": LEGACY_VERSIONS,
    "modern": MODERN_VERSIONS,
    "both": LEGACY_VERSIONS + MODERN_VERSIONS,
}

SHIPPED = os.path.join(os.path.dirname(__file__), "scenarios")
"""The folder of the shipped scenarios."""

_JSON_KEYS = ("inputSchema", "outputSchema", "annotations", "icons", "_meta", "arguments")


class Replay(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A cassette that is played. cassette: the path of its file. timing: the factor of the recorded times;
    None: everything is sent as soon as its turn comes. patience: seconds that something waits for a message
    that the recorded client sent before it. ignore: paths beside those of the cassette's ``match.ignore``.
    new: requests that aren't in the cassette are passed to the real server, and added to the cassette;
    command, or url and headers: of that server, empty for the recorded one; mask, secret: paths of messages
    and names of variables that are masked in what is added.
    """

    cassette: str
    timing: float | None = None
    patience: float = 1.0
    ignore: tuple[str, ...] = ()
    new: bool = False
    command: tuple[str, ...] = ()
    url: str = ""
    headers: dict[str, str] = {}
    mask: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.patience <= 3_600:
            raise ValueError(f"patience is {self.patience:g}; write seconds, 0 to 3600")
        if self.timing is not None and not 0 < self.timing <= 1_000:
            raise ValueError(f"timing is {self.timing:g}; write a factor between 0 and 1000")


class Scenario(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A server.

    era: ``legacy``, ``modern`` or ``both``; versions: only these protocol versions ("()": all of the era).
    capabilities: sent unchanged (None: derived from the scenario). page_size: tools, resources or prompts a
    page (None: one page); ttl_ms, cache_scope: the modern era's caching hints.
    changed_tools: the tools after the fault ``list-changed``. record_env: the environment variables whose
    values are recorded. oauth: over HTTP, it requires tokens of an authorization server of its own. replay:
    it answers as recorded.
    """

    name: str = "fake"
    about: str = ""
    title: str | None = None
    version: str = "1.0.0"
    instructions: str | None = None
    era: str = "both"
    versions: tuple[str, ...] = ()
    capabilities: object = None
    tools: tuple[Tool, ...] = ()
    changed_tools: tuple[Tool, ...] = ()
    generate: Generate | None = None
    resources: tuple[Resource, ...] = ()
    resource_templates: tuple[Resource, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    page_size: int | None = None
    ttl_ms: int = 0
    cache_scope: str = "private"
    record_env: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    oauth: OAuth | None = None
    replay: Replay | None = None

    def __post_init__(self) -> None:
        if self.era not in ERAS:
            raise ValueError(f"era is {self.era!r}; write legacy, modern or both")
        for version in self.versions:
            if version not in ERAS[self.era]:
                raise ValueError(
                    f"versions names {version!r}, which is not of era {self.era!r}; "
                    f"choose from {', '.join(ERAS[self.era])}"
                )
        if self.page_size is not None and self.page_size < 1:
            raise ValueError(f"page_size is {self.page_size}; write 1 or more")
        if self.cache_scope not in ("public", "private"):
            raise ValueError(f"cache_scope is {self.cache_scope!r}; write public or private")
        if (
            any(fault.kind in ("cursor-loop", "empty-cursor") for fault in self.faults)
            and self.page_size is None
        ):
            raise ValueError("a fault of paging needs pages; set page_size")

    @property
    def legacy_versions(self) -> tuple[str, ...]:
        """The versions that it accepts in `initialize`, oldest first; empty if it doesn't speak that era."""
        return tuple(v for v in self.versions or ERAS[self.era] if v in LEGACY_VERSIONS)

    @property
    def modern_versions(self) -> tuple[str, ...]:
        """The versions that it accepts per request; empty if it doesn't speak that era."""
        return tuple(v for v in self.versions or ERAS[self.era] if v in MODERN_VERSIONS)

    def all_tools(self) -> tuple[Tool, ...]:
        """The tools of the scenario, then the generated ones."""
        if self.generate is None:
            return self.tools
        from mcpzip_fakes.generate import tools  # rarely needed, and a fake must start fast

        return self.tools + tools(self.generate)

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, object], source: str = "scenario") -> "Scenario":
        """The scenario of a mapping with the structure of the file. ScenarioError names ``source`` and the
        key."""
        data = dict(mapping)
        for key, shape in _SHAPES.items():
            entries = data.get(key)
            if isinstance(entries, list | tuple):
                data[key] = [_split(entry, shape, f"{key}[{n}]", source) for n, entry in enumerate(entries)]
        faults = data.get("faults")
        if isinstance(faults, list | tuple):
            data["faults"] = [_fault(entry) for entry in faults]
        data["oauth"] = settings.plain(data.get("oauth"))
        try:
            return msgspec.convert(data, cls)
        except msgspec.ValidationError as error:
            raise scenario_error(source, error, _keys()) from None

    @classmethod
    def load(cls, path: "str | Path") -> "Scenario":
        """The scenario in a TOML or JSON file, or the shipped one of this name. Raises ScenarioError if it
        can't be used."""
        file = find(path)
        try:
            with open(file, "rb") as opened:
                text = opened.read()
            data = _from_json(text) if file.endswith(".json") else _from_toml(text)
        except OSError as error:
            raise ScenarioError(file, "", f"it can't be read ({error.strerror})", "check the path") from error
        except ValueError as error:  # both readers' errors are ValueErrors
            raise ScenarioError(file, "", str(error), "correct the syntax") from error
        if "cassette" in data:
            from mcpzip_fakes.replay import loaded  # only a cassette needs it

            data = loaded.scenario_data(data, file)
        data.setdefault("name", os.path.splitext(os.path.basename(file))[0])
        return cls.from_mapping(data, file)

    def with_era(self, era: str) -> "Scenario":
        """The same server speaking this era. Raises ScenarioError if there is no such era."""
        if era not in ERAS:
            raise ScenarioError(self.name, "era", f"{era!r} was asked for", f"ask for {', '.join(ERAS)}")
        versions = tuple(version for version in self.versions if version in ERAS[era])
        return msgspec.structs.replace(self, era=era, versions=versions)

    def over(self, transport: str) -> "Scenario":
        """Itself. Raises ScenarioError if something in it isn't possible on this transport."""
        if self.oauth and transport == "stdio":
            raise ScenarioError(
                self.name, "oauth", "there are no tokens over stdio", "use http or sse, or remove it"
            )
        for fault in self.faults:
            if transport not in fault.row.over:
                raise ScenarioError(
                    self.name,
                    "faults",
                    f"the fault {fault.kind!r} can't be played over {transport}",
                    f"use {' or '.join(sorted(fault.row.over))}",
                )
        return self

    def save(self, path: "Path") -> "Path":
        """Write it as JSON for `load` in another process."""
        path.write_bytes(msgspec.json.encode(self))
        return path


def find(name: "str | Path") -> str:
    """The file of a scenario by its path or the name of a shipped one. Raises ScenarioError if there is
    none."""
    path = os.fspath(name)
    if os.path.splitext(path)[1] in (".toml", ".json"):
        return path
    shipped = os.path.join(SHIPPED, f"{path}.toml")
    if os.path.isfile(shipped):
        return shipped
    raise ScenarioError(
        path, "", "there is no scenario of this name", f"give a path, or one of {', '.join(names())}"
    )


def names() -> list[str]:
    """The names of the shipped scenarios; those in a folder begin with its name and a slash."""
    from pathlib import Path

    files = [path.relative_to(SHIPPED).with_suffix("") for path in Path(SHIPPED).rglob("*.toml")]
    return sorted((file.as_posix() for file in files), key=lambda name: ("/" in name, name))


# Per list of definitions: the keys of this package; the rest of each table is the definition.
_SHAPES: Mapping[str, tuple[str, ...]] = {
    "tools": ("result", "late"),
    "changed_tools": ("result", "late"),
    "resources": ("text", "blob", "size", "whole", "ask", "state", "late"),
    "resource_templates": ("text", "blob", "size", "whole", "complete", "ask", "state", "late"),
    "prompts": ("messages", "whole", "complete", "ask", "state", "late"),
}


def _split(entry: object, ours: tuple[str, ...], path: str, source: str) -> object:
    """``entry`` with all other keys than ``ours`` collected, in their order, as the JSON text ``raw``."""
    if isinstance(entry, Tool | Resource | Prompt):
        return msgspec.to_builtins(entry)
    if isinstance(entry, str):
        entry = {"name": entry}
    if not isinstance(entry, dict) or "raw" in entry:
        return entry
    kept = {key: entry[key] for key in ours if key in entry}
    definition = {key: value for key, value in entry.items() if key not in ours}
    for key in _JSON_KEYS:
        try:
            if isinstance(definition.get(key), str):
                definition[key] = json_value(definition[key])
        except msgspec.DecodeError as error:
            raise ScenarioError(
                source, f"{path}.{key}", f"it is not JSON ({error})", "write a table or JSON text"
            ) from None
    if "result" in ours:
        if not isinstance(definition.get("name"), str):
            raise ScenarioError(
                source, path, "the key 'name' is missing", "add it, or give the definition as raw"
            )
        definition.setdefault("inputSchema", ANY_OBJECT)
    return {"raw": json_text(definition), **kept}


def _fault(entry: object) -> object:
    """A fault given as just its kind, as a `Fault` or as a table."""
    if isinstance(entry, str):
        return {"kind": entry}
    return msgspec.to_builtins(entry) if isinstance(entry, Fault) else entry


def _from_toml(text: bytes) -> JsonObject:
    import tomllib  # JSON scenarios, which tests pass to processes, don't need it

    return tomllib.loads(text.decode())


def _from_json(text: bytes) -> JsonObject:
    return cast(JsonObject, msgspec.json.decode(text, type=dict))


def _keys() -> dict[str, tuple[str, ...]]:
    def of(kind: type[Struct], *more: str) -> tuple[str, ...]:
        return (*(name for name in kind.__struct_encode_fields__), *more)

    return {
        "": of(Scenario),
        "replay": of(Replay),
        "tools": of(Tool),
        "changed_tools": of(Tool),
        "result": of(Answer),
        "made": of(Made),
        "progress": of(Step),
        "log": of(Log),
        "notify": of(Notice),
        "error": of(Refusal),
        "ask": of(Ask),
        "resources": of(Resource),
        "prompts": of(Prompt),
        "generate": of(Generate),
        "faults": option_keys(),
        **settings.option_keys(),
    }
