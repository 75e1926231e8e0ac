"""A proxy under test, as data.

The rule: all that the runner knows of a proxy stands in its subject file: how to write a config for N
servers, how to start it, how a tool is reached through it, and what it declares it does not do. A mistake in
the file is a `SubjectError`, one sentence.

    title = "my proxy"

    [start]
    command = ["my-proxy", "--config", "{config}"]

    [config]
    template = { mcpServers = "{servers}" }
    stdio = { command = "{command}", args = "{args}", env = "{env}" }

    [tools]
    names = "{server}__{tool}"

    [lacks]
    modern = "It speaks initialize only."

Templates are described in `template`; docs/conformance.md goes through every key.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import UNSET, Struct

from conformance.errors import SelectionError, SubjectError
from conformance.template import as_json, fill, places_in
from fakes.errors import scenario_error

SHIPPED = Path(__file__).parent / "subjects"

FEATURES: Mapping[str, str] = {
    "modern": "speaks protocol version 2026-07-28",
    "several-servers": "stands before more than one server at a time",
    "owns-servers": "starts the servers itself and decides what they get",
    "describe": "shows a tool's definition as its server wrote it",
    "search": "finds tools by a query",
    "search-limit": "takes a limit with a query",
    "meta-tools": "runs tools through a tool of its own",
}
"""What a check may need and a subject may lack."""

TRANSPORTS = ("stdio", "http", "sse")

_PLACES: Mapping[str, frozenset[str]] = {
    "start.command": frozenset({"python", "config", "upstream", "here", "home"}),
    "start.env": frozenset({"config", "here", "home"}),
    "config.template": frozenset({"servers"}),
    "config.stdio": frozenset({"name", "command", "args", "argv", "env"}),
    "config.http": frozenset({"name", "url"}),
    "config.sse": frozenset({"name", "url"}),
    "tools.names": frozenset({"server", "tool"}),
    "tools.call": frozenset({"name", "server", "tool", "arguments"}),
    "tools.search": frozenset({"query", "limit"}),
    "tools.describe": frozenset({"name", "server", "tool"}),
}


class Start(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to start it over stdio. env: on top of an environment with nothing in it but its own home."""

    command: tuple[str, ...]
    env: dict[str, str] = {}


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to write its config. template: the whole file, with ``{servers}`` where the servers go.

    servers: ``object`` (name -> entry) or ``list``; stdio, http, sse: the entry of one server, by the
    transport it is reached by; one that is missing can't be configured.
    """

    file: str = "config.json"
    template: object
    servers: str = "object"
    stdio: object = UNSET
    http: object = UNSET
    sse: object = UNSET

    def __post_init__(self) -> None:
        if self.servers not in ("object", "list"):
            raise ValueError(f"servers is {self.servers!r}; write object or list")


class Meta(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A meta-tool: its name and a template of its arguments."""

    tool: str
    arguments: object


class Search(Meta, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The meta-tool that finds tools. names: a regular expression; group 1 of each match in the reply's text
    is a tool's name, best first. ``^`` and ``$`` match at lines."""

    names: str


class Describe(Meta, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The meta-tool that shows one tool. definition: a regular expression; its group 1 is the definition as
    JSON, in the reply's text."""

    definition: str


class Tools(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a tool is reached. names: what a client calls it; with ``call`` through that meta-tool, else
    directly. own_meta: how the ``_meta`` keys begin that the subject adds to what it passes on."""

    names: str = "{server}__{tool}"
    call: Meta | None = None
    search: Search | None = None
    describe: Describe | None = None
    own_meta: tuple[str, ...] = ()


class Subject(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A proxy under test. id: the file's name without its ending; lacks: feature -> why, as a sentence."""

    id: str
    title: str
    about: str = ""
    start: Start
    config: Config | None = None
    tools: Tools
    lacks: dict[str, str] = {}

    @classmethod
    def load(cls, path: str | Path) -> "Subject":
        """The subject in a TOML file, or the shipped one of this name. SelectionError when there is none of
        that name, SubjectError when it can't be used."""
        import tomllib

        file = find(path)
        try:
            data = tomllib.loads(file.read_bytes().decode())
        except OSError as error:
            raise SubjectError(
                str(file), "", f"it can't be read ({error.strerror})", "check the path"
            ) from error
        except ValueError as error:
            raise SubjectError(str(file), "", str(error), "correct the syntax") from error
        return cls.from_mapping({"id": file.stem, **data}, str(file), file.parent)

    @classmethod
    def from_mapping(
        cls, data: Mapping[str, object], source: str = "subject", here: Path | None = None
    ) -> "Subject":
        """The subject that a mapping of the file's shape describes. here: the folder that ``{here}`` means.

        SubjectError names ``source`` and the key.
        """
        try:
            subject = msgspec.convert(dict(data), cls)
        except msgspec.ValidationError as error:
            said = scenario_error(source, error, _KEYS)
            raise SubjectError(source, said.path, said.found, said.remedy) from None
        for path, found, remedy in _mistakes(subject):
            raise SubjectError(source, path, found, remedy)
        folder = {"here": str((here or Path.cwd()).resolve())}
        keep = {place: f"{{{place}}}" for place in _PLACES["start.command"]}
        words = tuple(str(fill(word, {**keep, **folder})) for word in subject.start.command)
        env = {key: str(fill(value, {**keep, **folder})) for key, value in subject.start.env.items()}
        return msgspec.structs.replace(subject, start=Start(command=words, env=env))

    def missing(self) -> dict[str, str]:
        """What it doesn't do: feature -> why; what it declares and what follows from the rest of its file."""
        derived = {}
        if "upstream" in places_in(self.start.command):
            derived["several-servers"] = "It takes one server on its command line."
        if self.tools.call is None:
            derived["meta-tools"] = "Tools are called by their own names."
        elif self.tools.describe is None:
            derived["describe"] = "No tool of it shows a definition."
        if self.tools.search is None:
            derived["search"] = derived["search-limit"] = "No tool of it searches."
        elif "limit" not in places_in(as_json(self.tools.search.arguments)):
            derived["search-limit"] = "Its search takes no limit."
        return derived | self.lacks

    def shown(self, server: str, tool: str) -> str:
        """The name a client knows ``tool`` of ``server`` by."""
        return str(fill(self.tools.names, {"server": server, "tool": tool}))


def find(name: str | Path) -> Path:
    """The file of a subject given by path or by the name of a shipped one. SelectionError."""
    path = Path(name)
    if path.suffix == ".toml":
        return path
    shipped = SHIPPED / f"{name}.toml"
    if shipped.is_file():
        return shipped
    raise SelectionError(
        f"There is no subject {str(name)!r}: give a .toml file, or one of {', '.join(names())}."
    )


def names() -> list[str]:
    """The ids of the shipped subjects."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


Mistake = tuple[str, str, str]
"""Key path, what was found there, what would do."""


def _mistakes(subject: Subject) -> Iterable[Mistake]:
    """What the types don't rule out."""
    yield from _misplaced("start.command", subject.start.command)
    yield from _misplaced("start.env", subject.start.env)
    if not subject.start.command:
        yield "start.command", "it is empty", "write the program and its arguments"
    used = set(places_in(subject.start.command)) | set(places_in(subject.start.env))
    if subject.config is None:
        if "upstream" not in used:
            yield (
                "config",
                "it is missing",
                "say how to write the config, or put {upstream} into start.command",
            )
        if "config" in used:
            yield "config", "it is missing and start uses {config}", "say how to write the config"
    else:
        if "config" not in used:
            yield "start.command", "nothing in start uses {config}", "say where the config's path goes"
        yield from _config_mistakes(subject.config)
    yield from _tool_mistakes(subject.tools)
    for feature, why in subject.lacks.items():
        if feature not in FEATURES:
            yield f"lacks.{feature}", "there is no such feature", f"the features are {', '.join(FEATURES)}"
        if not why.strip():
            yield f"lacks.{feature}", "it is empty", "say why in a sentence"


def _config_mistakes(config: Config) -> Iterable[Mistake]:
    yield from _template_mistakes("config.template", config.template)
    if "servers" not in places_in(as_json(config.template)):
        yield "config.template", "the place {servers} is missing", "put it where the servers go"
    entries = [transport for transport in TRANSPORTS if getattr(config, transport) is not UNSET]
    if not entries:
        yield "config", "no transport has an entry", f"add one of {', '.join(TRANSPORTS)}"
    for transport in entries:
        yield from _template_mistakes(f"config.{transport}", getattr(config, transport))


def _tool_mistakes(tools: Tools) -> Iterable[Mistake]:
    yield from _misplaced("tools.names", tools.names)
    if "tool" not in places_in(tools.names):
        yield "tools.names", "the place {tool} is missing", "put it where the tool's name goes"
    if tools.call is not None:
        yield from _template_mistakes("tools.call.arguments", tools.call.arguments)
        yield from _misplaced("tools.call.tool", tools.call.tool)
        if "arguments" not in places_in(as_json(tools.call.arguments)):
            yield "tools.call.arguments", "the place {arguments} is missing", "put it where they go"
    elif tools.search or tools.describe:
        yield "tools.call", "it is missing beside search or describe", "say how a tool that was found is run"
    if tools.search is not None:
        yield from _template_mistakes("tools.search.arguments", tools.search.arguments)
        yield from _pattern_mistakes("tools.search.names", tools.search.names)
    if tools.describe is not None:
        yield from _template_mistakes("tools.describe.arguments", tools.describe.arguments)
        yield from _pattern_mistakes("tools.describe.definition", tools.describe.definition)


def _template_mistakes(path: str, template: object) -> Iterable[Mistake]:
    try:
        value = as_json(template)
    except ValueError as error:
        found, _, remedy = str(error).partition("; ")
        yield path, found, remedy
        return
    if not isinstance(value, dict | list):
        yield path, "it is neither a table nor a JSON object or list", "write one"
    yield from _misplaced(path, value)


def _misplaced(path: str, template: object) -> Iterable[Mistake]:
    legal = next(legal for key, legal in _PLACES.items() if path.startswith(key))
    for place in places_in(list(template) if isinstance(template, tuple) else template):
        if place not in legal:
            known = ", ".join(f"{{{name}}}" for name in sorted(legal))
            yield path, f"there is no place {{{place}}} here", f"the places are {known}"


def _pattern_mistakes(path: str, pattern: str) -> Iterable[Mistake]:
    try:
        groups = re.compile(pattern, re.MULTILINE).groups
    except re.error as error:
        yield path, f"it is no regular expression ({error})", "correct it"
        return
    if groups != 1:
        yield path, f"the expression has {groups} groups", "put one pair of parentheses around what is wanted"


def _fields(kind: type[Struct]) -> tuple[str, ...]:
    return tuple(kind.__struct_encode_fields__)


_KEYS = {
    "": _fields(Subject),
    "start": _fields(Start),
    "config": _fields(Config),
    "tools": _fields(Tools),
    "call": _fields(Meta),
    "search": _fields(Search),
    "describe": _fields(Describe),
}
