"""Tools that do or want something that their name doesn't say (pure).

Sources: the specification on annotations (2025-11-25, server/tools: untrusted unless the server is trusted);
the check of the same name in mcpproxy-go.
"""

import re
from collections.abc import Iterator

from mcpzip.checks.finding import Hit
from mcpzip.checks.texts import JsonMembers, folded, member, string, words_of_name

_READS = frozenset(
    [
        "get",
        "list",
        "search",
        "read",
        "fetch",
        "find",
        "show",
        "view",
        "describe",
        "count",
        "check",
        "lookup",
        "query",
    ]
)
_ALSO_WRITES = frozenset(
    [
        "and",
        "or",
        "replace",
        "out",
        "in",
        "set",
        "update",
        "create",
        "delete",
        "remove",
        "edit",
        "write",
        "clear",
        "reset",
        "purge",
        "move",
        "drop",
    ]
)
_DESTROYS = frozenset(
    [
        "delete",
        "remove",
        "drop",
        "destroy",
        "purge",
        "erase",
        "wipe",
        "truncate",
        "kill",
        "terminate",
        "uninstall",
    ]
)
_DELETES = re.compile(
    r"^(?:this tool |it )?(?:permanently )?(?:deletes|removes|drops|destroys|purges|erases|wipes|truncates|"
    r"delete|erase|wipe)"
    r" (?:all|the|every|a|an|this|your|files?|records?)\b"
)
_THEN_DELETES = re.compile(
    r"(?:, then|,? and then) (?:permanently )?(?:deletes|removes|drops|destroys|purges|erases|wipes)"
    r" (?:all|the|every|each|them|it)\b"
)
_HARMLESS = re.compile(
    r"\b(?:calculat(?:e|or)|add|subtract|multiply|divide|weather|forecast|time|clock|time ?zone|date|"
    r"convert units?|units?"
    r" convert\w{0,40}|currency|dice|random|joke|fact|echo|ping|translate|spell)\b"
)
_SECRETS = re.compile(
    r"\b(?:ssh(?: \w{1,40})? key(?: path)?|ssh key|private key|env file|password|passwd|id rsa|aws "
    r"secret\w{0,40}|"
    r"credentials? file|"
    r"home dir(?:ectory)?|mcp config|shell command|cookies?)\b"
)
_NEEDS_ACCOUNT = re.compile(
    r"\b(?:log ?in|sign ?in|account|auth\w{0,40}|session|upload|file|database|server|host|ssh)\b"
)


def mismatch(name: str, value: object) -> Iterator[tuple[str, str, Hit]]:
    """What the tool ``name`` with the decoded body ``value`` says of itself that doesn't agree: the path and
    text of it, and the hit.
    """
    words = words_of_name(name).lower().split()
    if not words:
        return
    described = string(member(value, "description"))
    reads = words[0] in _READS and not _ALSO_WRITES & {*words[1:]}
    hints = member(value, "annotations")
    if reads and described:
        about = folded(described[:400])
        if found := _DELETES.search(about) or _THEN_DELETES.search(about):
            yield "/description", described, Hit("capability.mismatch", "risky", 0, found.end())
    if reads and member(hints, "destructiveHint") is True and member(hints, "readOnlyHint") is not True:
        yield "/annotations/destructiveHint", name, Hit("capability.mismatch", "risky")
    if words[0] in _DESTROYS and member(hints, "readOnlyHint") is True:
        yield "/annotations/readOnlyHint", name, Hit("capability.mismatch", "risky")
    properties = member(value, "inputSchema", "properties")
    if not isinstance(properties, JsonMembers) or not _HARMLESS.search(" ".join(words)):
        return
    if _NEEDS_ACCOUNT.search(" ".join(words)) or _NEEDS_ACCOUNT.search(folded(described[:2_000])):
        return
    for key, _ in properties[:1_000]:
        if _SECRETS.search(words_of_name(key[:200]).lower()):
            yield (
                f"/inputSchema/properties/{key[:200]}",
                key,
                Hit("capability.mismatch", "risky", 0, len(key)),
            )
            return
