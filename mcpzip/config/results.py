"""The ``results`` of a config: which results of tools are kept, instead of sent whole."""

from mcpzip.config.node import Node
from mcpzip.config.schema import ResultsConfig
from mcpzip.model import limits
from mcpzip.model.names import join

KEEP, TOOLS = "keep", "tools"
KEYS = (KEEP, TOOLS)
OFF = "off"
LEAST, MOST = 500, 10_000_000
"""Tokens."""

_RESULTS = f'write a number of tokens, "{OFF}", or an object such as {{"keep": 2000}}'
_TOKENS = f'write a number of tokens, such as 10000, or "{OFF}"'
_TOOLS = f'write an object of tokens by tool, such as {{"github__*": 2000, "files__read_file": "{OFF}"}}'


def read_results(node: Node) -> ResultsConfig:
    """Raises ConfigError."""
    if not isinstance(node.value, dict):
        return ResultsConfig(_tokens(node, _RESULTS))
    node.object(_RESULTS, KEYS)
    keep, tools = map(node.get, KEYS)
    globs = tools.object(_TOOLS).members() if tools else {}
    if tools and len(globs) > limits.POLICY_GLOBS:
        raise tools.error(
            f"found {len(globs):,} globs", f"write {limits.POLICY_GLOBS:,} at most, with * in them"
        )
    for glob, each in globs.items():
        if join("", "") not in glob and not glob.startswith(("*", "?", "[")):
            raise each.error(
                "tools are named here with their server", f"write for example {join('github', glob)!r}"
            )
    usual = ResultsConfig().keep
    return ResultsConfig(
        _tokens(keep, _TOKENS) if keep else usual,
        tuple((glob, _tokens(each, _TOKENS)) for glob, each in globs.items()),
    )


def _tokens(node: Node, remedy: str) -> int | None:
    if node.value == OFF or node.value is False:
        return None
    if isinstance(node.value, str):
        raise node.error("found another word", remedy)
    return node.integer(LEAST, MOST)
