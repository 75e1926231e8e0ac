"""The ``code`` of a config: whether agents may run programs, and which calls these make unasked."""

from mcpzip.config.node import Node
from mcpzip.config.schema import DECISIONS, CodeConfig
from mcpzip.model import limits
from mcpzip.model.names import join

EFFECTS, ALLOW = "effects", "allow"
KEYS = (EFFECTS, ALLOW)

_CODE = f'write true, or an object such as {{"{EFFECTS}": "ask", "{ALLOW}": ["github__get_*"]}}'
_ALLOW = 'write a list of globs over names of tools, such as ["github__get_*"]'


def read_code(node: Node) -> CodeConfig:
    """Raises ConfigError."""
    if not isinstance(node.value, dict):
        if node.value is True or node.value is False:
            return CodeConfig(enabled=node.value)
        raise node.error("found neither true, false nor an object", _CODE)
    node.object(_CODE, KEYS)
    effects, allow = map(node.get, KEYS)
    globs = tuple(allow.texts(_ALLOW)) if allow else ()
    if allow and len(globs) > limits.POLICY_GLOBS:
        raise allow.error(f"found {len(globs):,} globs", f"write {limits.POLICY_GLOBS:,} at most")
    for glob in globs:
        if allow and join("", "") not in glob and not glob.startswith(("*", "?", "[")):
            raise allow.error(
                f"{glob!r} has no server, and tools are named here with theirs",
                f"write for example {join('github', glob)!r}",
            )
    chosen = effects.choice(DECISIONS, 'write "ask", "allow" or "deny"') if effects else None
    return CodeConfig(enabled=True, effects=chosen or "ask", allow=globs)
