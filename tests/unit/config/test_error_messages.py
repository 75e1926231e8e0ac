"""Every mistake made in a config: one sentence that names the file, the place, and what would do."""

import errno
import json
import sys

import pytest

from mcpzip.config import load, parse, reading
from mcpzip.model.errors import ConfigError

FILE = "/home/me/config.json"


def one(**keys: object) -> dict[str, object]:
    return {"mcpServers": {"a": keys}}


# What stands in the file, where the error points, what it found, what would do.
ERRORS = [
    ("", "", "the file is empty", '"mcpServers"'),
    (" \n ", "", "the file is empty", '"mcpServers"'),
    ("hello", "", "not JSON at line 1, column 1: something that begins with 'h'", "write a string"),
    ('{"a": 1,}', "", "not JSON at line 1, column 8: a comma before the closing '}'", "remove the comma"),
    ('{"a": [1,\n2,\n]}', "", "line 2, column 2: a comma before the closing ']'", "remove the comma"),
    ('{"a": 1, // one\n"b": 2}', "", "column 10: a comment", "remove it"),
    ('{"a": /* one */ 1}', "", "column 7: a comment", "remove it"),
    ("# one\n{}", "", "column 1: a comment", "remove it"),
    ("{'a': 1}", "", "column 2: a ' quote", 'straight double quotes (")'),
    ('{"a": “b”}', "", "column 7: a “ quote", 'straight double quotes (")'),
    ('{"a": True}', "", "column 7: True", "write true"),
    ('{"a": None}', "", "column 7: None", "write null"),
    ("{a: 1}", "", "column 2: something that is not a quoted key", "put the key in double quotes"),
    ('{"a" 1}', "", "column 6: a key without a value", "put a colon"),
    ('{"a": 1 "b": 2}', "", "column 9: two members without a comma", "put a comma before it"),
    ('{"a": "C:\\Users"}', "", "a backslash that escapes nothing", "double it"),
    ('{"a": "x\ny"}', "", "a line break or a tab inside a string", "close the string"),
    ('{"a": "x', "", "a string without its closing quote", "close the string"),
    ('{"a": {"b": 1}', "", "the file ends too early", "close the brackets"),
    ("{} {}", "", "column 4: more text after the end", "remove it"),
    (b'{"a":\n"\xff"}', "", "line 2 is not UTF-8", "save the file as UTF-8"),
    ("[" * 100_000, "", "it is nested too deeply", "remove some brackets"),
    ('{"a": ' + "9" * 5000 + "}", "", "a number has too many digits", "write a shorter one"),
    ('{"mcpServers": {"a": {}, "a": {}}}', "mcpServers.a", "the key is repeated", "keep one"),
    ('{"x": [{"b c": 1, "b c": 2}]}', 'x[0]."b c"', "the key is repeated", "keep one"),
    ([], "", "found a list", "write an object"),
    ("7", "", "found a number", "write an object"),
    ({"mcpServers": []}, "mcpServers", "found a list", "write an object of servers"),
    ({"mcpServers": {"a__b": {}}}, "mcpServers.a__b", "this name contains '__'", "rename it"),
    ({"mcpServers": {"": {}}}, 'mcpServers.""', "this name is empty", "rename it"),
    ({"mcpServers": {"a b": {}}}, 'mcpServers."a b"', "this name has a character other than", "rename it"),
    ({"mcpServers": {"_a": {}}}, "mcpServers._a", "this name begins or ends with '_'", "rename it"),
    (
        {"mcpServers": {"a": "npx"}},
        "mcpServers.a",
        "found a string",
        'write an object with a "command" or a "url"',
    ),
    (one(), "mcpServers.a", "neither a command nor a url", 'add "command" for a local server'),
    (one(command="x", url="https://x"), "mcpServers.a", "both a command and a url", "keep the command"),
    (one(type="http", command="x"), "mcpServers.a", '"type": "http" without a url', "add the url"),
    (
        one(type="stdio", url="https://x"),
        "mcpServers.a",
        '"type": "stdio" without a command',
        "add the command",
    ),
    (one(type="ws", url="wss://x"), "mcpServers.a.type", "found 'ws'", 'write "stdio", "http" or "sse"'),
    (one(type=3, url="https://x"), "mcpServers.a.type", "found a number", 'write "stdio", "http" or "sse"'),
    (one(command=["npx", "x"]), "mcpServers.a.command", "found a list", "write the program to start"),
    (
        one(command="x", args="-y y"),
        "mcpServers.a.args",
        "found a string",
        'write a list of strings, such as ["-y"',
    ),
    (one(command="x", args=["-p", 80]), "mcpServers.a.args[1]", "found a number", "in double quotes"),
    (one(command="x", args=[None]), "mcpServers.a.args[0]", "found null", "in double quotes"),
    (one(command="x", env=["A=b"]), "mcpServers.a.env", "found a list", "write an object of strings"),
    (one(command="x", env={"PORT": 80}), "mcpServers.a.env.PORT", "found a number", "in double quotes"),
    (one(command="x", env={"ON": True}), "mcpServers.a.env.ON", "found true", "in double quotes"),
    (one(command="x", cwd=["/"]), "mcpServers.a.cwd", "found a list", "write a folder"),
    (one(url=7), "mcpServers.a.url", "found a number", "write the address"),
    (
        one(url="https://x", headers="X: y"),
        "mcpServers.a.headers",
        "found a string",
        "write an object of strings",
    ),
    (
        one(url="https://x", headers={"X": {}}),
        "mcpServers.a.headers.X",
        "found an object",
        "in double quotes",
    ),
    (one(command="x", disabled="yes"), "mcpServers.a.disabled", "found a string", "write true or false"),
    (one(command="x", timeout="30"), "mcpServers.a.timeout", "found a string", "write a number of seconds"),
    (one(command="x", timeout=True), "mcpServers.a.timeout", "found true", "write a number of seconds"),
    (one(command="x", timeout=0), "mcpServers.a.timeout", "found 0", "above 0"),
    (one(command="x", timeout=10**400), "mcpServers.a.timeout", "found 1000000", "up to 31,536,000"),
    (one(command="x", timeout=1e300), "mcpServers.a.timeout", "found 1e+300", "up to 31,536,000"),
    (
        '{"mcpServers": {"a": {"command": "x", "timeout": NaN}}}',
        "mcpServers.a.timeout",
        "found nan",
        "above 0",
    ),
    (one(command="x", tools=["a"]), "mcpServers.a.tools", "found a list", 'such as {"allow": ["get_*"]'),
    (
        one(command="x", tools={"allow": "a"}),
        "mcpServers.a.tools.allow",
        "found a string",
        "write a list of tool names",
    ),
    (
        one(command="x", tools={"deny": [1]}),
        "mcpServers.a.tools.deny[0]",
        "found a number",
        "in double quotes",
    ),
    (one(command="x", pin="a"), "mcpServers.a.pin", "found a string", "write true, or a list of tool names"),
    (one(command="x", pin=1), "mcpServers.a.pin", "found a number", "write true, or a list of tool names"),
    (one(command="x", pin=[True]), "mcpServers.a.pin[0]", "found true", "in double quotes"),
    ({"idle_timeout_minutes": "5"}, "idle_timeout_minutes", "found a string", "write a number of minutes"),
    ({"idle_timeout_minutes": -1}, "idle_timeout_minutes", "found -1", "above 0 and up to 525,600"),
    ({"call_timeout_seconds": []}, "call_timeout_seconds", "found a list", "write a number of seconds"),
    ({"gemini_api_key": 7}, "gemini_api_key", "found a number", "write a string"),
    ({"search": 7}, "search", "found a number", 'such as {"default_limit": 5}'),
    ({"search": {"default_limit": 0}}, "search.default_limit", "found 0", "write a number from 1 to 100"),
    ({"search": {"default_limit": 2.5}}, "search.default_limit", "found 2.5", "a whole number from 1 to 100"),
    ({"search": {"default_limit": "5"}}, "search.default_limit", "found a string", "from 1 to 100"),
    ({"search": {"threshold": 2}}, "search.threshold", "found 2", "write a number from 0 to 1"),
    ({"search": {"max_tokens": 50}}, "search.max_tokens", "found 50", "a number from 100 to 20000"),
    ({"search": {"learn": "no"}}, "search.learn", "found 'no'", 'write true, false or "calls"'),
    ({"search": {"learn": 1}}, "search.learn", "found a number", 'write true, false or "calls"'),
    (
        {"search": {"llm_deadline_seconds": 0}},
        "search.llm_deadline_seconds",
        "found 0",
        "write a number of seconds above 0 and up to 60",
    ),
    (
        {"search": {"semantic": "gpu"}},
        "search.semantic",
        "found 'gpu'",
        'write "local", "onnx", "ollama", "off", the URL of',
    ),
    ({"search": {"semantic": 7}}, "search.semantic", "found a number", 'write "local", "onnx", "ollama"'),
    (
        {"search": {"semantic": "http://"}},
        "search.semantic",
        "not an http address",
        "write the whole address",
    ),
    (
        {"search": {"semantic": "http://[x/v1"}},
        "search.semantic",
        "not an http address",
        "write the whole address",
    ),
    (
        {"search": {"semantic": "ftp://gpu"}},
        "search.semantic",
        "not an http address",
        "write the whole address",
    ),
    ({"search": {"semantic": {}}}, "search.semantic", 'neither a "provider" nor a "url"', 'write "local"'),
    (
        {"search": {"semantic": {"provider": "cohere"}}},
        "search.semantic.provider",
        "found 'cohere'",
        'write "local", "onnx", "ollama", "openai" or "off"',
    ),
    (
        {"search": {"semantic": {"provider": "ollama", "url": "gpu"}}},
        "search.semantic.url",
        "not an http address",
        "such as http://127.0.0.1:11434",
    ),
    (
        {"search": {"semantic": {"provider": "ollama", "dimensions": 4}}},
        "search.semantic.dimensions",
        "found 4",
        "write a number from 8 to 16384",
    ),
    (
        {"search": {"semantic": {"provider": "ollama", "deadline_seconds": 61}}},
        "search.semantic.deadline_seconds",
        "found 61",
        "write a number of seconds above 0 and up to 60",
    ),
    ({"search": {"semantic": {"api_key": 7}}}, "search.semantic.api_key", "found a number", "write a string"),
    ({"search": {"model": {}}}, "search.model", "found an object", "write a string"),
    ({"search": {"model": "a b"}}, "search.model", "not a model name", 'such as "gemini-flash-lite-'),
    (one(command="x", boost=0), "mcpServers.a.boost", "found 0", "write a number from 0.1 to 10"),
    (one(command="x", boost="2"), "mcpServers.a.boost", "found a string", "write a number from 0.1 to 10"),
    ({"expose": "all"}, "expose", "found 'all'", 'write "meta", "direct" or "transparent"'),
    (
        {"expose": "transparent", "mcpServers": {"b": {"command": "x"}, "a": {"url": "https://x"}}},
        "expose",
        '"transparent" needs exactly one server, and these are enabled: a, b',
        'disable all servers but one, or write "direct" or "meta"',
    ),
    (
        {"expose": "transparent", "mcpServers": {"a": {"command": "x", "disabled": True}}},
        "expose",
        "none is enabled",
        'enable one, or write "direct" or "meta"',
    ),
    ({"expose": "transparent"}, "expose", "none is enabled", "enable one"),
    ({"expose": {"mode": "transparent"}}, "expose.mode", "none is enabled", "enable one"),
    ({"expose": {"mode": "all"}}, "expose.mode", "found 'all'", 'write "meta", "direct" or "transparent"'),
    ({"expose": []}, "expose", "found a list", 'write "meta", "direct" or "transparent"'),
    ({"expose": {"split": "yes"}}, "expose.split", "found a string", "write true or false, without quotes"),
    (
        {"expose": {"mode": "direct", "split": True}},
        "expose.split",
        'with "mode": "direct" there is no execute_tool to split',
        'remove it, or write "mode": "meta"',
    ),
    (
        {"expose": {"mode": "transparent", "split": True}, "mcpServers": {"a": {"command": "x"}}},
        "expose.split",
        'with "mode": "transparent" there is no execute_tool to split',
        'remove it, or write "mode": "meta"',
    ),
]


@pytest.mark.parametrize(("content", "path", "found", "remedy"), ERRORS)
def test_an_error_names_file_place_finding_and_remedy(content, path, found, remedy):
    data = (
        content
        if isinstance(content, bytes)
        else content
        if isinstance(content, str)
        else json.dumps(content)
    )
    with pytest.raises(ConfigError) as raised:
        parse(data if isinstance(data, bytes) else data.encode(), FILE, {}, strict=True)
    error = raised.value
    assert (error.file, error.path) == (FILE, path)
    assert found in error.found
    assert remedy in error.remedy
    assert str(error) == f"{FILE}: {path}{': ' if path else ''}{error.found}; {error.remedy}."
    assert "\n" not in str(error)


IN_A_SERVER = [
    error for error in ERRORS if str(error[1]).startswith("mcpServers.") and type(error[0]) is dict
]


@pytest.mark.parametrize(("content", "path", "found", "remedy"), IN_A_SERVER)
def test_a_mistake_in_one_server_costs_that_server_only(content, path, found, remedy):
    """A name with a space, or another client's key, and no server worked."""
    [(name, entry)] = content["mcpServers"].items()
    document = {**content, "mcpServers": {name: entry, "good": {"command": "good"}}}
    config = parse(json.dumps(document).encode(), FILE, {})
    assert config.servers["good"].problem is None
    if (bad := config.servers.get(name)) is not None:
        assert bad.problem is not None
        rest = path.removeprefix(f"mcpServers.{name}").removeprefix(".")
        assert bad.problem.startswith(f"{rest}: " if rest else found)
        assert found in bad.problem
        assert remedy in bad.problem
        assert config.warnings == ()
    else:  # tools could not be named after it
        [warning] = config.warnings
        assert warning.startswith(f"{FILE}: {path}: this name ")
        assert warning.endswith(" Until then the server is left out.")
    with pytest.raises(ConfigError):
        parse(json.dumps(document).encode(), FILE, {}, strict=True)


def test_a_server_with_a_mistake_can_be_disabled():
    config = parse(json.dumps(one(command=3, disabled=True, env={"A": "${NOPE}"})).encode(), FILE, {})
    assert config.servers["a"].disabled
    assert config.warnings == ()


@pytest.mark.parametrize(
    "entry",
    [
        {"httpUrl": "https://x.example/mcp"},  # Gemini CLI
        {"serverUrl": "https://x.example/mcp"},  # Windsurf
        {"url": "https://x.example/mcp", "transport": "streamable-http"},
        {"url": "https://x.example/mcp", "transportType": "http"},
    ],
)
def test_a_url_as_other_clients_write_it(entry):
    config = parse(json.dumps({"mcpServers": {"a": entry}}).encode(), FILE, {})
    server = config.servers["a"]
    assert (server.url, server.transport, server.problem) == ("https://x.example/mcp", "http", None)
    assert config.warnings == ()


@pytest.mark.parametrize("nested", [b'{"a": %s}', b'{"mcpServers": {"a": {"command": "x", "args": [%s]}}}'])
def test_no_depth_is_more_than_an_error(nested):
    limit = sys.getrecursionlimit()
    for depth in [*range(limit // 2 - 20, limit // 2 + 20, 2), *range(limit - 60, limit + 4, 2)]:
        try:
            said = parse(nested % (b"[" * depth + b"]" * depth), FILE, {}, strict=True).warnings[0]
        except ConfigError as error:
            said = str(error)
        assert said.startswith(f"{FILE}: ")


# What one server has, and the problem that is its own.
PROBLEMS = [
    ({"command": "${NOPE}"}, "command: the environment variable NOPE is not set", "${NOPE:-…}"),
    (
        {"command": "x", "args": ["a", "${NOPE}"]},
        "args[1]: the environment variable NOPE is not set",
        "set it where",
    ),
    (
        {"command": "x", "env": {"T": "${NOPE}"}},
        "env.T: the environment variable NOPE is not set",
        "set it where",
    ),
    ({"url": "https://${NOPE}/mcp"}, "url: the environment variable NOPE is not set", "set it where"),
    (
        {"url": "https://x", "headers": {"A": "${NOPE}"}},
        "headers.A: the environment variable NOPE",
        "set it where",
    ),
    ({"command": ""}, "command: the command is empty", "write the program to start"),
    ({"command": "x", "env": {"A=B": "c"}}, 'env."A=B": not a valid environment variable', "remove the '='"),
    ({"command": "x", "env": {"A": "\0"}}, "env.A: not a valid environment variable", "remove the '='"),
    (
        {"url": "x.example/mcp"},
        "url: not an http address",
        "write the whole address, such as https://example.com/mcp",
    ),
    ({"url": "wss://x.example"}, "url: not an http address", "write the whole address"),
    ({"url": "https://"}, "url: not an http address", "write the whole address"),
    (
        {"url": "https://x", "headers": {"A": "b\r\nC: d"}},
        "headers.A: not a valid header",
        "a value on one line",
    ),
    (
        {"url": "https://x", "headers": {"A B": "c"}},
        'headers."A B": not a valid header',
        "without spaces or colons",
    ),
]


@pytest.mark.parametrize(("keys", "problem", "remedy"), PROBLEMS)
def test_a_problem_of_one_server_leaves_the_others_alone(keys, problem, remedy):
    document = {"mcpServers": {"bad": keys, "good": {"command": "x"}}}
    config = parse(json.dumps(document).encode(), FILE, {})
    assert config.servers["good"].problem is None
    sentence = config.servers["bad"].problem
    assert sentence is not None
    assert sentence.startswith(problem)  # no path: who reads it knows the server
    assert remedy in sentence
    assert sentence.endswith(".")
    assert config.warnings == ()


def test_a_missing_file_is_named_with_the_commands_that_make_it(tmp_path):
    for path in (tmp_path / "none.json", tmp_path / "file" / "config.json"):
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(ConfigError) as raised:
            load(str(path), {})
        assert str(raised.value) == (
            f"{path}: there is no such file; move your clients' servers here with 'mcpzip migrate', "
            "or add one with 'mcpzip add'."
        )


def test_a_folder_is_called_one(tmp_path):
    with pytest.raises(ConfigError, match="this is a folder; name the config file in it"):
        load(str(tmp_path), {})


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            PermissionError(errno.EACCES, "Permission denied"),
            "there is no permission to read it; give read access to the user that",
        ),
        (OSError(errno.EIO, "Input/output error"), "it can't be read (Input/output error); check the file"),
        (
            OSError(errno.EFBIG, "larger than 5 bytes"),
            "it can't be read (larger than 5 bytes); check the file",
        ),
    ],
)
def test_a_file_that_cannot_be_read_says_why(monkeypatch, error, sentence):
    def refuse(path: str, limit: int) -> bytes:
        raise error

    monkeypatch.setattr(reading, "read_bytes_limited", refuse)
    with pytest.raises(ConfigError) as raised:
        load(FILE, {})
    assert str(raised.value).startswith(f"{FILE}: {sentence}")
