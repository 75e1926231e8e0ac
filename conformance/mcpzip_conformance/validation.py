"""Errors in a subject file that its types don't detect.

The rule: an error has three parts: the key path, what was found there, what to write.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress

from mcpzip_conformance.declaration import (
    FEATURES,
    TRANSPORTS,
    Change,
    Config,
    Declared,
    Install,
    Program,
    Replicas,
    Start,
    Tools,
    npm_parts,
)
from mcpzip_conformance.template import as_json, places_in

COMMAND_PLACES = (
    "python",
    "config",
    "upstream",
    "upstream_line",
    "url",
    "here",
    "home",
    "bin",
    "packages",
    "port",
    "scenario",
    "record",
    "private_port",
    "shared",
    "key",
    "new_key",
    "store",
    "token",
    "other_token",
    "issuer",
    "jwks",
    "resource",
    "scope",
)
"""``{scenario}`` and ``{record}``, the files of the one server, are for the runner's own control."""

STORE_PLACES = ("store_port", "store_folder")
"""Of the command that starts a store."""

_OF_ACCESS = frozenset({"token", "other_token", "issuer", "jwks", "resource", "scope"})
"""What a subject is told of those who call it."""
_OF_PROCESS = frozenset({"private_port", "shared", "key", "new_key", "store"})
"""What its process has for itself, or shares with the other replicas."""

_PLACES: Mapping[str, frozenset[str]] = {
    "start.command": frozenset(COMMAND_PLACES),
    "start.env": frozenset({"config", "url", "here", "home", "bin", "packages", "port"})
    | _OF_ACCESS
    | _OF_PROCESS,
    "start.url": frozenset({"port"}),
    "config.template": frozenset({"servers", "home", "port"}) | _OF_ACCESS | _OF_PROCESS,
    "authorization.resource": frozenset({"port"}),
    "replicas.store": frozenset({*STORE_PLACES, "here", "python"}),
    "config.stdio": frozenset({"name", "command", "args", "argv", "env"}),
    "config.http": frozenset({"name", "url"}),
    "config.sse": frozenset({"name", "url"}),
    "tools.names": frozenset({"server", "tool"}),
    "tools.alone": frozenset({"server", "tool"}),
    "tools.shared": frozenset({"server", "tool"}),
    "tools.call": frozenset({"name", "server", "tool", "arguments"}),
    "tools.search": frozenset({"query", "limit"}),
    "tools.describe": frozenset({"name", "server", "tool"}),
    "tools.rest": frozenset({"handle"}),
    "tools.program.resume": frozenset({"handle", "name", "server", "tool", "arguments"}),
    "tools.program.call": frozenset({"name", "server", "tool", "arguments", "keywords"}),
    "tools.program.value": frozenset({"value"}),
    "tools.program.failed": frozenset({"value"}),
    "tools.program.together": frozenset({"calls"}),
    "tools.program.each": frozenset({"name", "server", "tool", "arguments", "keywords"}),
    "tools.program.returns": frozenset({"value"}),
    "tools.program": frozenset({"code"}),
    "tools.refresh": frozenset(),
    "prompts": frozenset({"server", "prompt"}),
    "resources": frozenset({"server", "uri", "scheme", "rest"}),
}

Mistake = tuple[str, str, str]
"""Key path, what was found there, what to write."""


def mistakes(subject: Declared) -> Iterable[Mistake]:
    """Every error in ``subject``."""
    if subject.install is not None:
        yield from _install_mistakes(subject.install)
    yield from _start_mistakes(subject.start, subject.install, used_places(subject))
    yield from _config_places(subject)
    if subject.config is not None:
        yield from _config_mistakes(subject.config)
    yield from _tool_mistakes(subject.tools)
    yield from _access_mistakes(subject)
    if subject.replicas is not None:
        yield from _replicas_mistakes(subject, subject.replicas)
    for key, template, wanted in _namings(subject):
        yield from _misplaced(key, template)
        if not wanted & set(places_in(template)):
            place = f"{{{sorted(wanted)[-1]}}}"
            yield key, f"the place {place} is missing", "put it where the server's own name for it goes"
    for feature, why in subject.lacks.items():
        if feature not in FEATURES:
            yield f"lacks.{feature}", "there is no such feature", f"the features are {', '.join(FEATURES)}"
        if not why.strip():
            yield f"lacks.{feature}", "it is empty", "say why in a sentence"


def _install_mistakes(install: Install) -> Iterable[Mistake]:
    if bool(install.pip) == bool(install.npm):
        found = "it has packages of both" if install.pip else "it has no packages"
        yield "install", found, "name the packages of one registry: pip (PyPI) or npm"
    if install.lock and not install.npm:
        yield "install.lock", "it stands without install.npm", "name the packages, or remove lock"
    for pin in install.npm:
        try:
            npm_parts(pin)
        except ValueError as error:
            yield "install.npm", str(error), "write the exact version"


def _start_mistakes(start: Start, install: Install | None, told: set[str]) -> Iterable[Mistake]:
    """told: the placeholders in the config, too."""
    yield from _misplaced("start.command", start.command)
    yield from _misplaced("start.env", start.env)
    yield from _misplaced("start.url", start.url)
    if not start.command:
        yield "start.command", "it is empty", "write the program and its arguments"
    used = set(places_in(start.command)) | set(places_in(start.env))
    if "bin" in used and install is None:
        yield "install", "it is missing and start uses {bin}", "name the packages that bring the program"
    if "packages" in used and (install is None or not install.npm):
        yield "install.npm", "it is missing and start uses {packages}", "name the packages of npm"
    if start.url and not re.match(r"https?://", start.url):
        yield (
            "start.url",
            f"{start.url!r} is no http address",
            "write it whole, as http://127.0.0.1:{port}/mcp",
        )
    if any("{upstream}" in word and word != "{upstream}" for word in start.command):
        remedy = "let it stand alone: it becomes as many words as start the server; {upstream_line} is one"
        yield "start.command", "{upstream} stands within a word", remedy
    if "port" in set(places_in(start.url)) - told:
        yield (
            "start.command",
            "nothing in start uses {port}, and start.url does",
            "say how it is told its port",
        )
    if start.up and not start.url:
        yield "start.url", "it is missing beside start.up", "say where it serves, or remove up"
    if used & {"port", "private_port"} and not start.url:
        yield "start.url", "it is missing and start uses {port}", "say where it serves"
    groups = 0
    if start.up:
        try:
            groups = re.compile(start.up, re.MULTILINE).groups
        except re.error as error:
            yield "start.up", f"it is no regular expression ({error})", "correct it"
        else:
            if groups > 1:
                yield (
                    "start.up",
                    f"the expression has {groups} groups",
                    "put one pair of parentheses around the URL",
                )
    if start.url and "port" not in places_in(start.url) and not groups:
        yield (
            "start.url",
            "it has no {port}, and checks are played at the same time",
            "put {port} there and into start, or have start.up catch the URL",
        )


def _config_places(subject: Declared) -> Iterable[Mistake]:
    used = set(places_in(subject.start.command)) | set(places_in(subject.start.env))
    if subject.config is None:
        if not used & {"upstream", "upstream_line", "url", "scenario"}:
            remedy = "say how to write the config, or put {upstream} or {url} into start.command"
            yield "config", "it is missing", remedy
        if "config" in used:
            yield "config", "it is missing and start uses {config}", "say how to write the config"
    elif "config" not in used:
        yield "start.command", "nothing in start uses {config}", "say where the config's path goes"
    elif known := sorted(used & {"upstream", "upstream_line", "url", "scenario", "record"}):
        place = f"{{{known[0]}}}"
        yield "start.command", f"{place} stands beside a config", "remove one: the servers are in the config"


def _config_mistakes(config: Config) -> Iterable[Mistake]:
    yield from _template_mistakes("config.template", config.template)
    if "servers" not in places_in(as_json(config.template)):
        yield "config.template", "the place {servers} is missing", "put it where the servers go"
    if not config.entries():
        yield "config", "no transport has an entry", f"add one of {', '.join(TRANSPORTS)}"
    for transport in config.entries():
        yield from _template_mistakes(f"config.{transport}", getattr(config, transport))
    if config.upstream and config.upstream not in config.entries():
        yield "config.upstream", f"{config.upstream} has no entry", f"add config.{config.upstream}"


def _access_mistakes(subject: Declared) -> Iterable[Mistake]:
    used = used_places(subject)
    authorization = subject.authorization
    for key, table in (("authorization", authorization), ("replicas", subject.replicas)):
        if table is not None and not (subject.start.url and subject.start.transport == "http"):
            yield key, "it stands for a subject that isn't reached over Streamable HTTP", "write start.url"
    if authorization is None:
        for place in sorted(used & {"issuer", "jwks", "resource", "scope"}):
            yield (
                "authorization",
                f"it is missing and {{{place}}} is used",
                "add the table, which may be empty",
            )
    else:
        yield from _misplaced("authorization.resource", authorization.resource)
        if not used & {"issuer", "jwks"}:
            found = "nothing in start and config uses {issuer} or {jwks}"
            yield "authorization", found, "say how it is told whose tokens it takes"
        if not authorization.scope and "scope" in used:
            yield "authorization.scope", "it is missing and {scope} is used", "write the scope that it needs"
        if used & {"token", "other_token"}:
            found = "{token} is used beside it, and its tokens are those of the issuer"
            yield "authorization", found, "remove one of both"
    if len(used & {"token", "other_token"}) == 1:
        yield "start", "one of {token} and {other_token} is used", "use both, each for a person, or none"


def _replicas_mistakes(subject: Declared, replicas: Replicas) -> Iterable[Mistake]:
    changes = [(f"replicas.key_rotation[{n}]", change) for n, change in enumerate(replicas.key_rotation)]
    if replicas.other_version is not None:
        changes.append(("replicas.other_version", replicas.other_version))
    for path, change in changes:
        for key, legal in (("config", "config.template"), ("env", "start.env"), ("command", "start.command")):
            yield from _misplaced(f"{path}.{key}", getattr(change, key), legal)
        if change == Change():
            yield path, "it changes nothing", "write its config, env or command"
        if change.config and subject.config is None:
            yield f"{path}.config", "there is no table config", "write env or command"
    if replicas.key_rotation:
        first = _used_by(subject.start.command, subject.start.env, _template(subject))
        remedy = "begin with {key} alone; the changes bring {new_key}"
        if "key" not in first:
            yield "replicas.key_rotation", "nothing in start and config uses {key}", remedy
        if "new_key" in first:
            yield "replicas.key_rotation", "{new_key} is in start or config", remedy
        if "key" in _used_by_change(replicas.key_rotation[-1]):
            yield "replicas.key_rotation", "the last change has {key}", "end with {new_key} alone"
    if replicas.store is not None:
        yield from _misplaced("replicas.store", replicas.store.command)
        if replicas.store.command and "store_port" not in places_in(replicas.store.command):
            yield "replicas.store.command", "nothing in it uses {store_port}", "say how it is told its port"
        if "store" not in used_places(subject):
            yield (
                "replicas.store",
                "nothing in start and config uses {store}",
                "say how it is told its address",
            )
    elif "store" in used_places(subject):
        yield "replicas.store", "it is missing and {store} is used", "say how the store is started"


def used_places(subject: Declared) -> set[str]:
    """The placeholders in its command, environment and config, and in the changes of these."""
    used = _used_by(subject.start.command, subject.start.env, _template(subject))
    if subject.replicas is not None:
        for change in (*subject.replicas.key_rotation, subject.replicas.other_version or Change()):
            used |= _used_by_change(change)
    return used


def _template(subject: Declared) -> object:
    """The config's template; None if it has none, or one that is no JSON, which is said where it is looked
    at."""
    with suppress(ValueError):
        return None if subject.config is None else as_json(subject.config.template)
    return None


def _used_by(*templates: object) -> set[str]:
    return {place for template in templates for place in places_in(template)}


def _used_by_change(change: Change) -> set[str]:
    return _used_by(change.command, change.env, change.config)


def _tool_mistakes(tools: Tools) -> Iterable[Mistake]:
    if tools.call is not None:
        yield from _template_mistakes("tools.call.arguments", tools.call.arguments)
        yield from _misplaced("tools.call.tool", tools.call.tool)
        yield from _misplaced("tools.call.alone", tools.call.alone)
        if "arguments" not in places_in(as_json(tools.call.arguments)):
            yield "tools.call.arguments", "the place {arguments} is missing", "put it where they go"
    elif tools.search or tools.describe:
        yield "tools.call", "it is missing beside search or describe", "say how a tool that was found is run"
    if tools.search is not None:
        yield from _template_mistakes("tools.search.arguments", tools.search.arguments)
        yield from _pattern_mistakes("tools.search.names", tools.search.names)
    if tools.describe is not None:
        yield from _template_mistakes("tools.describe.arguments", tools.describe.arguments)
        yield from _misplaced("tools.describe.tool", tools.describe.tool)
        yield from _misplaced("tools.describe.alone", tools.describe.alone)
        if tools.describe.definition:
            yield from _pattern_mistakes("tools.describe.definition", tools.describe.definition)
    if tools.rest is not None:
        yield from _template_mistakes("tools.rest.arguments", tools.rest.arguments)
        yield from _misplaced("tools.rest.tool", tools.rest.tool)
        yield from _pattern_mistakes("tools.rest.handle", tools.rest.handle)
    if tools.program is not None:
        yield from _program_mistakes(tools.program)
    if tools.refresh is not None:
        yield from _template_mistakes("tools.refresh.arguments", tools.refresh.arguments)
        yield from _misplaced("tools.refresh.tool", tools.refresh.tool)


def _program_mistakes(program: Program) -> Iterable[Mistake]:
    yield from _template_mistakes("tools.program.arguments", program.arguments)
    yield from _misplaced("tools.program.tool", program.tool)
    if "code" not in places_in(as_json(program.arguments)):
        yield "tools.program.arguments", "the place {code} is missing", "put it where the program goes"
    for key in ("call", "value", "failed", "together", "each", "returns"):
        yield from _misplaced(f"tools.program.{key}", getattr(program, key))
    if not {"name", "tool"} & set(places_in(program.call)):
        yield "tools.program.call", "the place {name} is missing", "put it where the name of the tool goes"
    if not {"arguments", "keywords"} & set(places_in(program.call)):
        yield "tools.program.call", "the place {arguments} is missing", "put it, or {keywords}, where they go"
    for key in ("value", "returns"):
        if "value" not in places_in(getattr(program, key)):
            yield f"tools.program.{key}", "the place {value} is missing", "put it where the expression goes"
    if program.together and "calls" not in places_in(program.together):
        yield "tools.program.together", "the place {calls} is missing", "put it where the calls go"
    if program.each and not program.together:
        yield "tools.program.together", "it is missing beside each", "say how several calls are made"
    if program.resume is not None:
        yield from _template_mistakes("tools.program.resume.arguments", program.resume.arguments)
        yield from _misplaced("tools.program.resume.tool", program.resume.tool)
        yield from _pattern_mistakes("tools.program.resume.handle", program.resume.handle)


def _namings(subject: Declared) -> Iterable[tuple[str, str, set[str]]]:
    """Each template of a name: its key, the template, and the placeholders of which it needs one."""
    yield "tools.names", subject.tools.names, {"tool"}
    if subject.tools.alone:
        yield "tools.alone", subject.tools.alone, {"tool"}
    if subject.tools.shared:
        yield "tools.shared", subject.tools.shared, {"tool"}
    if subject.prompts is not None:
        yield "prompts.names", subject.prompts.names, {"prompt"}
        if subject.prompts.alone:
            yield "prompts.alone", subject.prompts.alone, {"prompt"}
    if subject.resources is not None:
        yield "resources.uris", subject.resources.uris, {"uri", "rest"}
        if subject.resources.alone:
            yield "resources.alone", subject.resources.alone, {"uri", "rest"}


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


def _misplaced(path: str, template: object, like: str = "") -> Iterable[Mistake]:
    """Placeholders that mean nothing there. like: the key whose placeholders it may have, "" for its own."""
    legal = next(legal for key, legal in _PLACES.items() if (like or path).startswith(key))
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
