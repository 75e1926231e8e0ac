"""The ``policy``, the ``risk`` and the ``audit`` of a config: what a person has decided about calls of tools.

The rule: this says what may run, so nothing in it is ignored. A key or a value that is unknown is an error,
not a warning as elsewhere.
"""

import os
from urllib.parse import urlsplit

from mcpzip.config.node import TEXT, Node
from mcpzip.config.paths import expand_home
from mcpzip.config.schema import AUDIT_STDOUT, DECISIONS, AuditConfig, Decision, FlowConfig, PolicyConfig
from mcpzip.config.syntax import member
from mcpzip.model import limits
from mcpzip.model.names import join
from mcpzip.model.risk import RISK_CLASSES, RiskClass

DEFAULT, TOOLS, FLOWS = "default", "tools", "flows"
AUDIT_KEYS = ("path", "arguments", "to")
ARGUMENTS = ("names", "values")
KEYS = (DEFAULT, *RISK_CLASSES, TOOLS, FLOWS)
FLOW_KEYS = ("from", "to", "do")

_POLICY = 'write "allow", "ask" or "deny", or an object such as {"destroys": "ask"}'
_DECISION = 'write "allow", "ask" or "deny"'
_TOOLS = 'write an object of decisions by tool, such as {"delete_*": "ask"}'
_FLOWS = 'write a list of flows, such as [{"from": "mail", "to": "web__*", "do": "ask"}]'
_RISK = 'write an object of classes by tool, such as {"get_*": "reads"}'
_CLASSES = 'write "reads", "writes", "destroys" or "reaches_out", or a list of them'
_AUDIT = 'write true, a path, or an object such as {"path": "~/audit.jsonl"}'
_AUDIT_TO = 'write "file", "stdout" or "postgresql://…", the URL of a database'
_SPECIAL = frozenset("*?[")

Globs = tuple[tuple[str, Decision], ...]


def read_policy(node: Node | None, server: str = "") -> PolicyConfig:
    """The policy in ``node``; one without any rule if it is None. server: whose it is, "" for that of all
    servers. Raises ConfigError.
    """
    if node is None:
        return PolicyConfig()
    if not isinstance(node.value, dict):
        if not isinstance(node.value, str):
            raise node.error("found something else than a decision", _POLICY)
        return PolicyConfig(default=_decision(node, _POLICY))
    for key, value in node.value.items():
        if key not in KEYS and not key.startswith(("_", "//")):
            raise Node(node.source, member(node.path, key), value).error("there is no such key", _meant(key))
    classes = tuple(
        (each, _decision(found, _DECISION)) for each in RISK_CLASSES if (found := node.get(each)) is not None
    )
    default = node.get(DEFAULT)
    return PolicyConfig(
        default=None if default is None else _decision(default, _DECISION),
        classes=classes,
        tools=_globs(node.get(TOOLS), server),
        flows=_flows(node.get(FLOWS), server),
    )


def read_audit(node: Node | None) -> AuditConfig | None:
    """The settings of the audit log; None if there is to be none. Raises ConfigError."""
    if node is None or node.value is False:
        return None
    if node.value is True:
        return AuditConfig()
    if isinstance(node.value, str):
        return AuditConfig(_path(node))
    node.object(_AUDIT, AUDIT_KEYS)
    path, arguments, to = map(node.get, AUDIT_KEYS)
    values = arguments.choice(ARGUMENTS, 'write "names" or "values"') if arguments else None
    where = _audit_to(to) if to else ""
    if path and "://" in where:
        raise path.error("the log is to be in a database, and not in a file", "leave out path, or to")
    return AuditConfig(_path(path) if path else "", values == "values", where)


def _audit_to(node: Node) -> str:
    """Where the log is to be instead of in its file: see `AuditConfig`. Raises ConfigError."""
    from mcpzip.config.http import given  # most configs have none
    from mcpzip.config.secrets import register_in_text

    text = given(node, _AUDIT_TO)
    if text in ("file", AUDIT_STDOUT):
        return text if text == AUDIT_STDOUT else ""
    register_in_text(text)
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("postgresql", "postgres") and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid or any(not "!" <= character <= "~" for character in text):
        raise node.error("found no place for the audit log", _AUDIT_TO)
    return text


def _path(node: Node) -> str:
    """The path in ``node``, absolute: a relative one is from the folder of the config."""
    text = expand_home(node.text(_AUDIT).strip(), node.source.env)
    if not text:
        raise node.error("the path is empty", _AUDIT)
    return os.path.join(os.path.dirname(node.source.file), text)


def read_risk(node: Node | None, server: str) -> tuple[tuple[str, tuple[RiskClass, ...]], ...]:
    """The classes of the tools of ``server`` by glob, as a person has them. Raises ConfigError."""
    if node is None:
        return ()
    globs = node.object(_RISK).members()
    _check_number(node, len(globs))
    return tuple((_own(each, glob, server), _classes(each)) for glob, each in globs.items())


def _globs(node: Node | None, server: str) -> Globs:
    if node is None:
        return ()
    globs = node.object(_TOOLS).members()
    _check_number(node, len(globs))
    found = []
    for glob, each in globs.items():
        if not server and join("", "") not in glob and not _SPECIAL & set(glob[:1]):
            raise each.error(
                "tools are named here with their server", f"write for example {join('github', glob)!r}"
            )
        found.append((_own(each, glob, server) if server else glob, _decision(each, _DECISION)))
    return tuple(found)


def _flows(node: Node | None, server: str) -> tuple[FlowConfig, ...]:
    if node is None:
        return ()
    if server:
        raise node.error("a flow is between servers", 'write it into the "policy" beside "mcpServers"')
    if not isinstance(node.value, list):
        raise node.error("found no list", _FLOWS)
    _check_number(node, len(node.value))
    return tuple(_flow(Node(node.source, f"{node.path}[{at}]", each)) for at, each in enumerate(node.value))


def _flow(node: Node) -> FlowConfig:
    node.object(_FLOWS)
    found = node.members()
    unknown = [key for key in found if key not in FLOW_KEYS and not key.startswith(("_", "//"))]
    if unknown or any(key not in found for key in FLOW_KEYS):
        raise node.error(f"found the keys {', '.join(found) or 'of nothing'}", 'write "from", "to" and "do"')
    source, target = (found[key].text(TEXT).strip() for key in FLOW_KEYS[:2])
    if not (source and target):
        raise node.error("an empty name", "write a server, or a tool with its server; * stands for anything")
    return FlowConfig(source, target, _decision(found["do"], _DECISION))


def _own(node: Node, glob: str, server: str) -> str:
    prefix = join(server, "")
    if glob.startswith(prefix):
        own = glob.removeprefix(prefix)
        raise node.error("tools are named here without their server", f"write {own!r}")
    return glob


def _check_number(node: Node, number: int) -> None:
    if number > limits.POLICY_GLOBS:
        raise node.error(f"found {number:,} globs", f"write {limits.POLICY_GLOBS:,} at most, with * in them")


def _decision(node: Node, remedy: str) -> Decision:
    found = node.text(TEXT).strip()
    for decision in DECISIONS:
        if decision == found:
            return decision
    raise node.error(f"found {found[:20]!r}", remedy)


def _classes(node: Node) -> tuple[RiskClass, ...]:
    named = [node.value] if isinstance(node.value, str) else node.texts(_CLASSES)
    if wrong := [each for each in named if each not in RISK_CLASSES]:
        raise node.error(f"found {wrong[0][:20]!r}", _CLASSES)
    if not named:
        raise node.error("found an empty list", _CLASSES)
    if "reads" in named and not {"writes", "destroys"}.isdisjoint(named):
        raise node.error("found a tool that reads only, and writes", _CLASSES)
    return tuple(each for each in RISK_CLASSES if each in named)


def _meant(key: str) -> str:
    from difflib import get_close_matches  # slow to import, and needed for typing mistakes only

    near = get_close_matches(key.lower(), KEYS, n=1, cutoff=0.5)
    return f"write {near[0]!r}" if near else f"the keys here are {', '.join(KEYS)}"
