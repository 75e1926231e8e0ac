"""A proxy under test, as data.

The rule: all that the runner knows of a proxy is in its subject file: the config for N servers, its command,
the names of tools, and the features that it lacks. An error in the file is a `SubjectError`, one sentence.

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

Templates are described in `template`, variants in `variants`; docs/conformance-subjects.md describes every
key.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec
from mcpzip_fakes.errors import scenario_error
from msgspec import Struct

from mcpzip_conformance.declaration import (
    FEATURES,
    Authorization,
    Change,
    Config,
    Declared,
    Describe,
    Install,
    Meta,
    Program,
    Prompts,
    Replicas,
    Resources,
    Rest,
    Resume,
    Run,
    Search,
    Shared,
    Start,
    Store,
    Tools,
)
from mcpzip_conformance.errors import SelectionError, SubjectError
from mcpzip_conformance.template import as_json, fill, places_in
from mcpzip_conformance.validation import COMMAND_PLACES, STORE_PLACES, mistakes, used_places
from mcpzip_conformance.variants import members

__all__ = ["FEATURES", "Prompts", "Resources", "Start", "Subject", "Tools", "find", "load_all", "names"]

SHIPPED = Path(__file__).parent / "subjects"


class Subject(Declared, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A proxy under test; its fields are those of `declaration.Declared`."""

    @classmethod
    def load(cls, name: str | Path) -> "Subject":
        """The one subject of this name, as `load_all`. Raises SelectionError if the file has several."""
        found = load_all(name)
        if len(found) > 1:
            ids = ", ".join(subject.id for subject in found)
            raise SelectionError(f"{str(name)!r} has several variants: name one of {ids}.")
        return found[0]

    @classmethod
    def from_mapping(
        cls, data: Mapping[str, object], source: str = "subject", here: Path | None = None
    ) -> "Subject":
        """The subject of a mapping with the structure of the file, without variants. here: the value of
        ``{here}``, and where ``install.lock`` begins.

        SubjectError names ``source`` and the key.
        """
        try:
            subject = msgspec.convert(dict(data), cls)
        except msgspec.ValidationError as error:
            said = scenario_error(source, error, _KEYS)
            raise SubjectError(source, said.path, said.found, said.remedy) from None
        for path, found, remedy in mistakes(subject):
            raise SubjectError(source, path, found, remedy)
        folder = (here or Path.cwd()).resolve()
        places = {place: f"{{{place}}}" for place in COMMAND_PLACES}
        places["here"] = str(folder)
        words = tuple(str(fill(word, places)) for word in subject.start.command)
        env = {key: str(fill(value, places)) for key, value in subject.start.env.items()}
        replicas = None if subject.replicas is None else _placed(subject.replicas, places)
        install = subject.install
        if install is not None and install.lock:
            install = msgspec.structs.replace(install, lock=str(folder / install.lock))
        return msgspec.structs.replace(
            subject,
            install=install,
            start=msgspec.structs.replace(subject.start, command=words, env=env),
            replicas=replicas,
        )

    @property
    def family(self) -> str:
        """The name of its file."""
        return self.id.partition(":")[0]

    @property
    def upstream(self) -> str:
        """The transport of its servers: ``config.upstream``, or the first of ``stdio``, ``http`` and ``sse``
        that has an entry.
        """
        if self.config is None:
            used = (*places_in(self.start.command), *places_in(self.start.env))
            return "http" if "url" in used else "stdio"
        return self.config.upstream or self.config.entries()[0]

    def missing(self) -> dict[str, str]:
        """The features that it lacks: feature -> why; declared, or following from the rest of its file."""
        derived = {"http": "It is reached over stdio."} if not self.start.url else {}
        if self.start.url:
            derived["stdio"] = "It is reached over HTTP."
            if self.start.transport == "sse":
                derived["http"] = "It is reached over HTTP+SSE, the transport of 2024-11-05."
                derived["modern"] = "The protocol has had no HTTP+SSE since 2025-03-26."
        if self.shared is None:
            derived["shared"] = "Its file doesn't say that it serves several clients at the same time."
        if self.authorization is None:
            derived["issuer"] = "Its file has no table authorization: it requires no tokens of an issuer."
            if "token" not in used_places(self):
                derived["people"] = "Its file doesn't say how people are told apart."
        if self.replicas is None:
            derived["replicas"] = "Its file has no table replicas: it is one process."
        replicas = self.replicas or Replicas()
        if not replicas.key_rotation:
            derived["key-rotation"] = "Its file doesn't say how its key is replaced."
        if replicas.other_version is None:
            derived["versions"] = "Its file names no other version of it."
        if replicas.store is None:
            derived["store"] = "Its file names no store that its processes share."
        if self.upstream != "stdio":
            derived["owns-servers"] = "Its servers are on HTTP; nobody starts them."
        if self.config is None:
            derived["several-servers"] = "It takes one server on its command line."
        if self.tools.call is None:
            derived["meta-tools"] = "Tools are called by their own names."
            if self.tools.hidden:
                derived["describe"] = "Its list shows no tools of its servers."
        elif self.tools.describe is None:
            derived["describe"] = "No tool of it shows a definition."
        elif not self.tools.describe.definition:
            derived["describe"] = "It shows a definition in a form of its own."
        if self.tools.search is None:
            derived["search"] = derived["search-limit"] = "No tool of it searches."
        elif "limit" not in places_in(as_json(self.tools.search.arguments)):
            derived["search-limit"] = "Its search takes no limit."
        if self.tools.rest is None:
            derived["rest"] = "Its file names no tool that gives the rest of a result."
        if self.tools.program is None:
            derived["programs"] = "Its file names no tool that runs programs."
        if self.prompts is None:
            derived["prompts"] = "Its file doesn't say what it calls a prompt."
        if self.resources is None:
            derived["resources"] = derived["subscriptions"] = "Its file doesn't say what it calls a resource."
        return derived | self.lacks

    def shown(self, server: str, tool: str, *, alone: bool = False, shared: bool = False) -> str:
        """The client's name of ``tool`` of ``server``. alone: it is the only server; shared: another server
        has a tool of that name."""
        tools = self.tools
        template = (alone and tools.alone) or (shared and tools.shared) or tools.names
        return str(fill(template, {"server": server, "tool": tool}))

    def prompt(self, server: str, prompt: str, *, alone: bool = False) -> str:
        """The client's name of ``prompt``. The subject must have prompts."""
        assert self.prompts is not None, "a check with prompts must need the feature"
        template = self.prompts.alone if alone and self.prompts.alone else self.prompts.names
        return str(fill(template, {"server": server, "prompt": prompt}))

    def uri(self, server: str, uri: str, *, alone: bool = False) -> str:
        """The client's URI (or template) of a resource. The subject must have resources."""
        assert self.resources is not None, "a check with resources must need the feature"
        template = self.resources.alone if alone and self.resources.alone else self.resources.uris
        scheme, _, rest = uri.partition("://")
        return str(fill(template, {"server": server, "uri": uri, "scheme": scheme, "rest": rest}))


def _placed(replicas: Replicas, places: Mapping[str, object]) -> Replicas:
    """With the values of these placeholders in every command and environment."""

    def words(command: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(str(fill(word, places)) for word in command)

    def change(made: Change) -> Change:
        env = {key: str(fill(value, places)) for key, value in made.env.items()}
        return msgspec.structs.replace(made, command=words(made.command), env=env)

    places = {**places, **{place: f"{{{place}}}" for place in STORE_PLACES}}
    store, other = replicas.store, replicas.other_version
    return msgspec.structs.replace(
        replicas,
        key_rotation=tuple(map(change, replicas.key_rotation)),
        other_version=None if other is None else change(other),
        store=None if store is None else msgspec.structs.replace(store, command=words(store.command)),
    )


def load_all(name: str | Path) -> tuple[Subject, ...]:
    """The subjects in a TOML file, or in the shipped one of this name; with ``:VARIANT`` only that one.
    Raises SelectionError if there is none of that name, SubjectError if one can't be used."""
    import tomllib

    path, wanted = _split(str(name))
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


def family(name: str | Path) -> tuple[str, ...]:
    """The ids of all subjects in the file of ``name``. Raises as `load_all`."""
    return tuple(subject.id for subject in load_all(_split(str(name))[0]))


def find(name: str | Path) -> Path:
    """The file of a subject by its path or the name of a shipped one. Raises SelectionError."""
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


def _split(name: str) -> tuple[str, str]:
    """The file of ``name``, a path or a name, and the variant, "" for none."""
    path, _, variant = name.rpartition(":") if _has_variant(name) else (name, "", "")
    return path, variant


def _has_variant(name: str) -> bool:
    """Whether a colon in ``name`` precedes a variant, and is not that of a Windows drive."""
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
    "rest": _fields(Rest),
    "program": _fields(Program),
    "resume": _fields(Resume),
    "refresh": _fields(Meta),
    "prompts": _fields(Prompts),
    "resources": _fields(Resources),
    "shared": _fields(Shared),
    "authorization": _fields(Authorization),
    "replicas": _fields(Replicas),
    "key_rotation": _fields(Change),
    "other_version": _fields(Change),
    "store": _fields(Store),
}
