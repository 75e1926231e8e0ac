"""Servers whose processes can't be used by every client (pure): those that keep what one client did, and
those that are started with paths relative to a client's folder.

The rule: of the former, only what is known to keep such a state is here, by the name of its package or
program: browsers (their page), shells and interpreters (their session), and those that follow one line of
thought or one project. All others are shared until they ask a client something.
"""

import re
from collections.abc import Iterable
from itertools import pairwise

from mcpzip.model.lazy_pattern import lazy_pattern

STATEFUL = frozenset(
    {
        # browsers
        "@playwright/mcp",
        "@executeautomation/playwright-mcp-server",
        "playwright-mcp",
        "mcp-playwright",
        "@modelcontextprotocol/server-puppeteer",
        "puppeteer-mcp-server",
        "chrome-devtools-mcp",
        "@browsermcp/mcp",
        "@browserbasehq/mcp",
        "@browserbasehq/mcp-server-browserbase",
        "browser-use",
        "browser-use-mcp-server",
        "mcp-selenium",
        "@angiejones/mcp-selenium",
        # shells, terminals, interpreters, debuggers
        "@wonderwhy-er/desktop-commander",
        "desktop-commander",
        "mcp-server-commands",
        "mcp-shell-server",
        "mcp-interactive-terminal",
        "iterm-mcp",
        "jupyter-mcp-server",
        "mcp-server-jupyter",
        "ipython-mcp",
        "mcp-run-python",
        "mcp-python-repl",
        "@pydantic/mcp-run-python",
        "mcp-debugger",
        # one line of thought, one project
        "@modelcontextprotocol/server-sequential-thinking",
        "mcp-sequentialthinking-tools",
        "serena",
        "serena-agent",
        "serena-mcp-server",
    }
)

_PACKAGE = lazy_pattern(
    r"(?:git\+)?(?:https?://\S*/)?(@?[A-Za-z0-9._/-]+?)(?:\.git|\.exe|\.cmd)?(?:[@=<>~\[].*)?"
)


def is_stateful(command: str, args: Iterable[str]) -> bool:
    """Whether the server that is started with these words is one of `STATEFUL`."""
    for word in (re.split(r"[\\/]", command)[-1], *args):
        found = _PACKAGE.fullmatch(word[:200])
        if found is not None and found.group(1).lower() in STATEFUL:
            return True
    return False


_FILES = (
    *("py", "js", "mjs", "cjs", "ts", "mts", "cts", "sh", "rb", "php", "go", "lua", "jar", "csproj"),
    *("json", "toml", "ya?ml", "ini", "cfg", "conf", "env", "txt", "db", "sqlite3?", "duckdb"),
)
_RELATIVE = lazy_pattern(
    rf"(?:--?[\w-]+=)?(?:\.{{1,2}}(?:[\\/:].*)?|\.env|[^\\/@:=-][^:=]*\.(?:{'|'.join(_FILES)}))",
    re.DOTALL,
)
_OF_A_PROJECT = {
    **dict.fromkeys(("npm", "pnpm", "yarn"), ("run", "start", "exec")),
    **dict.fromkeys(("uv", "poetry", "pdm", "hatch", "rye", "pipenv", "cargo", "go", "dotnet"), ("run",)),
    "docker": ("compose",),
}
"""Programs that, with one of these words first, run what the project in the working folder says."""


_WORKING_FOLDER = lazy_pattern(r"\$PWD\b|\$\{PWD\b|\$\(pwd\)|`pwd`|%CD%", re.IGNORECASE)
_NOT_RELATIVE = lazy_pattern(r"[\\/~$%-]|[A-Za-z]:|.*(?:://|[\0\n])", re.DOTALL)
_NAMES = 50
"""Words of a server that are looked up in a folder."""


def has_relative_path(command: str, args: Iterable[str], values: Iterable[str] = ()) -> bool:
    """Whether one of these words names a file or folder relative to the working folder, as far as its form
    says so (``.``, ``../data``, ``--root=.``, ``build/index.js``, ``.:/work``, ``$PWD/data``), or they run a
    script of the project there (``npm run mcp``). values: of the server's ``env``.
    """
    words, values = list(args), list(values)
    if any(_WORKING_FOLDER.search(word[:1000]) is not None for word in (command, *words, *values)):
        return True
    if any(value[:1000].startswith(("./", "../", ".\\", "..\\")) or value in (".", "..") for value in values):
        return True
    if re.match(r"(?![\\/~]|[A-Za-z]:)[^\\/]+[\\/]", command):
        return True
    if words and words[0] in _OF_A_PROJECT.get(re.split(r"[\\/]", command)[-1], ()):
        return True
    return any(_RELATIVE.fullmatch(word[:1000]) is not None for word in words)


def possible_names(command: str, args: Iterable[str]) -> tuple[str, ...]:
    """The words that name a file or folder of the working folder if it has one of that name, although their
    form doesn't say so (``server-filesystem src``), and the files of a module that Python would find there
    (``python -m server``).
    """
    names, words = list[str](), list(args)
    is_python = re.match(r"(?:python|pypy|py)[\d.]*(?:\.exe)?$", re.split(r"[\\/]", command)[-1]) is not None
    for before, word in pairwise(["", *words]):
        if word.startswith("-") and "=" in word:
            word = word.partition("=")[2]
        if is_python and word.startswith("-m") and len(word) > 2:
            before, word = "-m", word[2:]
        if not word or len(word) > 255 or _NOT_RELATIVE.match(word):
            continue
        if is_python and before == "-m":
            package = word.partition(".")[0]
            names += [package, f"{package}.py"]
        else:
            names.append(word)
    return tuple(dict.fromkeys(names))[:_NAMES]
