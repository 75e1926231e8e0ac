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

Templates are described in `template`, variants in `families`; docs/conformance.md goes through every key.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import UNSET, Struct

from conformance.errors import SelectionError, SubjectError
from conformance.families import members
from conformance.template import as_json, fill, places_in
from fakes.errors import scenario_error

SHIPPED = Path(__file__).parent / "subjects"

FEATURES: Mapping[str, str] = {
    "modern": "speaks protocol version 2026-07-28",
    "stdio": "is reached over stdio",
    "http": "is reached over Streamable HTTP",
    "several-servers": "stands before more than one server at a time",
    "owns-servers": "starts the servers itself and decides what they get",
    "describe": "shows a tool's definition as its server wrote it",
    "search": "finds tools by a query",
    "search-limit": "takes a limit with a query",
    "meta-tools": "runs tools through a tool of its own",
    "resources": "offers the resources of its servers",
    "prompts": "offers the prompts of its servers",
    "completion": "passes on requests for completions",
    "progress": "passes on progress",
    "cancellation": "passes on that a request was cancelled",
    "logging": "passes on log messages",
    "sampling": "passes on a server's requests for sampling",
    "elicitation": "passes on a server's questions to the user",
    "roots": "passes on a server's request for roots",
    "list-changed": "notices that a server's lists have changed",
    "subscriptions": "passes on subscriptions to resources",
}
"""What a check may need and a subject may lack."""

TRANSPORTS = ("stdio", "http", "sse")


class Install(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What it is installed from. pip: pinned packages."""

    pip: tuple[str, ...]


class Start(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to start it. env: on top of an environment with nothing in it but its own home.

    url: where it serves Streamable HTTP; "" for stdio. up: a regular expression for what it prints once it
    takes connections, "" to try its port; its group 1, if there is one, is the URL.
    """

    command: tuple[str, ...]
    env: dict[str, str] = {}
    url: str = ""
    up: str = ""


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to write its config. template: the whole file, with ``{servers}`` where the servers go.

    servers: ``object`` (name -> entry) or ``list``; stdio, http, sse: the entry of one server, by the
    transport it is reached by; one that is missing can't be configured. upstream: the transport that is
    played over; "" for the first that has an entry.
    """

    file: str = "config.json"
    template: object
    servers: str = "object"
    stdio: object = UNSET
    http: object = UNSET
    sse: object = UNSET
    upstream: str = ""

    def __post_init__(self) -> None:
        if self.servers not in ("object", "list"):
            raise ValueError(f"servers is {self.servers!r}; write object or list")
        if self.upstream not in ("", *TRANSPORTS):
            raise ValueError(f"upstream is {self.upstream!r}; write {', '.join(TRANSPORTS)}")

    def entries(self) -> tuple[str, ...]:
        """The transports that have an entry."""
        return tuple(transport for transport in TRANSPORTS if getattr(self, transport) is not UNSET)


class Meta(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A meta-tool: its name and a template of its arguments."""

    tool: str
    arguments: object


class Run(Meta, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The meta-tool that runs one. result: a path into its result, dots between, at which the server's result
    stands; "" when it is the result itself."""

    result: str = ""


class Search(Meta, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The meta-tool that finds tools. names: a regular expression; group 1 of each match in the reply's text
    is a tool's name, best first. ``^`` and ``$`` match at lines."""

    names: str


class Describe(Meta, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The meta-tool that shows one tool. definition: a regular expression; its group 1 is the definition as
    JSON, in the reply's text."""

    definition: str


class Tools(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a tool is reached. names: what a client calls it, alone: where there is one server only, if that
    differs; with ``call`` through that meta-tool, else directly. own_meta: how the ``_meta`` keys begin that
    the subject adds to what it passes on."""

    names: str = "{server}__{tool}"
    alone: str = ""
    call: Run | None = None
    search: Search | None = None
    describe: Describe | None = None
    own_meta: tuple[str, ...] = ()


class Prompts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a client calls a prompt; alone: where there is one server only, if that differs."""

    names: str
    alone: str = ""


class Resources(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """By what URI a client reads a resource; alone: where there is one server only, if that differs."""

    uris: str
    alone: str = ""


class Subject(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A proxy under test. id: the file's name without its ending, with ``:VARIANT`` if it has variants;
    version, homepage: for reports; not_run: why nobody has run it, "" otherwise; lacks: feature -> why, as a
    sentence."""

    id: str
    title: str
    about: str = ""
    version: str = ""
    homepage: str = ""
    not_run: str = ""
    install: Install | None = None
    start: Start
    config: Config | None = None
    tools: Tools
    prompts: Prompts | None = None
    resources: Resources | None = None
    lacks: dict[str, str] = {}

    @classmethod
    def load(cls, name: str | Path) -> "Subject":
        """The one subject of this name, as `load_all`. SelectionError when the file has several."""
        found = load_all(name)
        if len(found) > 1:
            ids = ", ".join(subject.id for subject in found)
            raise SelectionError(f"{str(name)!r} has several variants: name one of {ids}.")
        return found[0]

    @classmethod
    def from_mapping(
        cls, data: Mapping[str, object], source: str = "subject", here: Path | None = None
    ) -> "Subject":
        """The subject that a mapping of the file's shape, without variants, describes. here: the folder that
        ``{here}`` means.

        SubjectError names ``source`` and the key.
        """
        from conformance.mistakes import COMMAND_PLACES, mistakes

        try:
            subject = msgspec.convert(dict(data), cls)
        except msgspec.ValidationError as error:
            said = scenario_error(source, error, _KEYS)
            raise SubjectError(source, said.path, said.found, said.remedy) from None
        for path, found, remedy in mistakes(subject):
            raise SubjectError(source, path, found, remedy)
        places = {place: f"{{{place}}}" for place in COMMAND_PLACES}
        places["here"] = str((here or Path.cwd()).resolve())
        words = tuple(str(fill(word, places)) for word in subject.start.command)
        env = {key: str(fill(value, places)) for key, value in subject.start.env.items()}
        return msgspec.structs.replace(
            subject, start=msgspec.structs.replace(subject.start, command=words, env=env)
        )

    @property
    def family(self) -> str:
        """The name of its file."""
        return self.id.partition(":")[0]

    @property
    def upstream(self) -> str:
        """How its servers are reached: ``stdio``, ``http`` or ``sse``."""
        if self.config is None:
            return "http" if "url" in places_in(self.start.command) else "stdio"
        return self.config.upstream or self.config.entries()[0]

    def missing(self) -> dict[str, str]:
        """What it doesn't do: feature -> why; what it declares and what follows from the rest of its file."""
        derived = {"http": "It is reached over stdio."} if not self.start.url else {}
        if self.start.url:
            derived["stdio"] = "It is reached over HTTP."
        if self.upstream != "stdio":
            derived["owns-servers"] = "Its servers are on HTTP; nobody starts them."
        if self.config is None:
            derived["several-servers"] = "It takes one server on its command line."
        if self.tools.call is None:
            derived["meta-tools"] = "Tools are called by their own names."
        elif self.tools.describe is None:
            derived["describe"] = "No tool of it shows a definition."
        if self.tools.search is None:
            derived["search"] = derived["search-limit"] = "No tool of it searches."
        elif "limit" not in places_in(as_json(self.tools.search.arguments)):
            derived["search-limit"] = "Its search takes no limit."
        if self.prompts is None:
            derived["prompts"] = "Its file doesn't say what it calls a prompt."
        if self.resources is None:
            derived["resources"] = derived["subscriptions"] = "Its file doesn't say what it calls a resource."
        return derived | self.lacks

    def shown(self, server: str, tool: str, *, alone: bool = False) -> str:
        """The name a client knows ``tool`` of ``server`` by. alone: it is the only server."""
        template = self.tools.alone if alone and self.tools.alone else self.tools.names
        return str(fill(template, {"server": server, "tool": tool}))

    def prompt(self, server: str, prompt: str, *, alone: bool = False) -> str:
        """The name a client knows ``prompt`` by. The subject must have prompts."""
        assert self.prompts is not None, "a check with prompts must need the feature"
        template = self.prompts.alone if alone and self.prompts.alone else self.prompts.names
        return str(fill(template, {"server": server, "prompt": prompt}))

    def uri(self, server: str, uri: str, *, alone: bool = False) -> str:
        """The URI (or template) a client knows a resource's by. The subject must have resources."""
        assert self.resources is not None, "a check with resources must need the feature"
        template = self.resources.alone if alone and self.resources.alone else self.resources.uris
        scheme, _, rest = uri.partition("://")
        return str(fill(template, {"server": server, "uri": uri, "scheme": scheme, "rest": rest}))


def load_all(name: str | Path) -> tuple[Subject, ...]:
    """The subjects in a TOML file, or in the shipped one of this name; with ``:VARIANT`` behind it only that
    one. SelectionError when there is none of that name, SubjectError when one can't be used."""
    import tomllib

    path, _, wanted = str(name).rpartition(":") if _has_variant(str(name)) else (str(name), "", "")
    file = find(path)
    try:
        data = tomllib.loads(file.read_bytes().decode())
    except OSError as error:
        raise SubjectError(str(file), "", f"it can't be read ({error.strerror})", "check the path") from error
    except ValueError as error:
        raise SubjectError(str(file), "", str(error), "correct the syntax") from error
    found = []
    for variant, table in members(data, str(file)):
        id = f"{file.stem}:{variant}" if variant else file.stem
        source = f"{file} (variant {variant})" if variant else str(file)
        found.append((variant, Subject.from_mapping({"id": id, **table}, source, file.parent)))
    chosen = tuple(subject for variant, subject in found if wanted in ("", variant))
    if not chosen:
        known = ", ".join(variant for variant, _ in found if variant) or "it has none"
        raise SelectionError(f"There is no variant {wanted!r} of {path}; the variants: {known}.")
    return chosen


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
    """The names of the shipped files."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def _has_variant(name: str) -> bool:
    """Whether a colon in ``name`` is one before a variant, and not the one of a drive."""
    head, colon, tail = name.rpartition(":")
    return (
        bool(colon) and "/" not in tail and "\\" not in tail and not tail.endswith(".toml") and len(head) > 1
    )


def _fields(kind: type[Struct]) -> tuple[str, ...]:
    return tuple(kind.__struct_encode_fields__)


_KEYS = {
    "": (*_fields(Subject), "variants", "layers"),
    "install": _fields(Install),
    "start": _fields(Start),
    "config": _fields(Config),
    "tools": _fields(Tools),
    "call": _fields(Run),
    "search": _fields(Search),
    "describe": _fields(Describe),
    "prompts": _fields(Prompts),
    "resources": _fields(Resources),
}
