"""The original's config and ours on top of it are read; nothing secret shows."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.config import Config, SearchConfig, Secret, ServerConfig, load, parse, reading
from mcpzip.config import auth as auth_keys
from mcpzip.config import search as search_keys
from mcpzip.config import server as server_keys
from mcpzip.config.schema import AuthConfig, SemanticConfig
from mcpzip.model.errors import ConfigError

FILE = "/home/me/config.json"


def read(document: object, **env: str) -> Config:
    return parse(json.dumps(document).encode(), FILE, env)


def server(env: dict[str, str] | None = None, /, **keys: object) -> ServerConfig:
    return read({"mcpServers": {"it": keys}}, **(env or {})).servers["it"]


def test_the_originals_config_is_read_unchanged(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(
        json.dumps(
            {
                "gemini_api_key": None,
                "search": {"default_limit": 7, "model": None},
                "idle_timeout_minutes": 10,
                "call_timeout_seconds": 60,
                "mcpServers": {
                    "slack": {
                        "type": "",
                        "command": "npx",
                        "args": ["-y", "slack-mcp"],
                        "env": {"SLACK_TOKEN": "xoxb"},
                        "cwd": "/srv",
                        "url": None,
                    },
                    "todoist": {"type": "http", "url": "https://todoist.example/mcp", "headers": {"X": "1"}},
                    "github": {"type": "streamable-http", "url": "https://github.example/mcp"},
                    "linear": {"type": "sse", "url": "https://linear.example/sse"},
                    "plain": {"command": "plain"},
                    "remote": {"url": "http://127.0.0.1:8000/mcp"},
                },
            }
        )
    )
    config = load(str(path), {})
    assert config == Config(
        path=str(path),
        servers={
            "slack": ServerConfig(
                "slack", "stdio", "npx", ("-y", "slack-mcp"), {"SLACK_TOKEN": "xoxb"}, cwd="/srv"
            ),
            "todoist": ServerConfig(
                "todoist", "http", url="https://todoist.example/mcp", headers={"X": "1"}, auth=AuthConfig()
            ),
            "github": ServerConfig("github", "http", url="https://github.example/mcp", auth=AuthConfig()),
            "linear": ServerConfig("linear", "sse", url="https://linear.example/sse", auth=AuthConfig()),
            "plain": ServerConfig("plain", "stdio", "plain"),
            "remote": ServerConfig("remote", "http", url="http://127.0.0.1:8000/mcp", auth=AuthConfig()),
        },
        search=SearchConfig(default_limit=7, model="gemini-flash-lite-latest"),
        idle_timeout=600.0,
        call_timeout=60.0,
        variables=frozenset({"GEMINI_API_KEY"}),
    )
    assert list(config.servers) == ["slack", "todoist", "github", "linear", "plain", "remote"]


def test_what_a_config_leaves_out_has_its_default():
    config = read({"mcpServers": {"a": {"command": "a"}}})
    assert (config.idle_timeout, config.call_timeout, config.search.default_limit) == (300.0, 120.0, 5)
    assert (config.gemini_api_key, config.expose, config.warnings) == (None, "meta", ())
    assert config.search == SearchConfig(5, 1_500, True, "gemini-flash-lite-latest", 3.0)
    assert config.search.semantic == SemanticConfig("local", deadline=1.5)
    assert config.servers["a"].boost == 1


def test_what_is_ours_on_top_is_read():
    read_one = server(
        command="a",
        disabled=True,
        timeout=2.5,
        tools={"allow": ["get_*"], "deny": ["*_all"]},
        pin=["get_one"],
    )
    assert (read_one.disabled, read_one.timeout, read_one.pin) == (True, 2.5, ("get_one",))
    assert (read_one.tools_allow, read_one.tools_deny) == (("get_*",), ("*_all",))
    assert server(command="a").tools_allow is None
    assert server(command="a", tools={"allow": []}).tools_allow == ()


@pytest.mark.parametrize(
    ("said", "pin"),
    [(True, ("*",)), (False, ()), (None, ()), ([], ()), (["get_*", "${T:-send}"], ("get_*", "send"))],
)
def test_tools_are_pinned_all_or_by_name(said, pin):
    assert server(command="a", pin=said).pin == pin


def test_a_server_can_be_preferred():
    assert server(command="a", boost=1.5).boost == 1.5
    assert server(url="https://x", boost=None).boost == 1


def search(said: object, /, **env: str) -> SearchConfig:
    config = read({"mcpServers": {"a": {"command": "a"}}, "search": said}, **env)
    assert config.warnings == ()
    return config.search


def test_everything_about_search_can_be_said():
    found = search(
        {
            "default_limit": 50,
            "max_tokens": 300,
            "learn": False,
            "model": "models/gemini-3.8-flash",
            "llm_deadline_seconds": 0.5,
            "semantic": {
                "provider": "openai",
                "url": "https://x.example/v1",
                "model": "m",
                "api_key": "${K}",
                "dimensions": 256,
                "deadline_seconds": 2,
                "query_prefix": "query: ",
                "document_prefix": "",
            },
            "threshold": 0.5,
        },
        K="sk-1 ",
    )
    there = SemanticConfig(
        "openai",
        "https://x.example/v1",
        "m",
        Secret("sk-1"),
        256,
        2.0,
        query_prefix="query: ",
        document_prefix="",
    )
    assert found == SearchConfig(50, 300, False, "models/gemini-3.8-flash", 0.5, there, 0.5)


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("local", SemanticConfig()),
        ("", SemanticConfig()),
        (None, SemanticConfig()),
        ("off", SemanticConfig("off")),
        ("onnx", SemanticConfig("onnx")),
        ({"provider": "onnx"}, SemanticConfig("onnx")),
        ("ollama", SemanticConfig("ollama")),
        ({"provider": "ollama", "model": "m"}, SemanticConfig("ollama", model="m")),
        ("http://127.0.0.1:11434", SemanticConfig("ollama", "http://127.0.0.1:11434")),
        ("http://gpu.lan/api", SemanticConfig("ollama", "http://gpu.lan/api")),
        ("http://gpu.lan/api/embed", SemanticConfig("ollama", "http://gpu.lan/api/embed")),
        ("http://[::1]:11434/v1", SemanticConfig("openai", "http://[::1]:11434/v1")),
        ("HTTPS://x.example", SemanticConfig("openai", "HTTPS://x.example")),
        ({"url": "http://x:11434"}, SemanticConfig("ollama", "http://x:11434")),
        ({"url": "http://x:1", "provider": "ollama"}, SemanticConfig("ollama", "http://x:1")),
    ],
)
def test_what_finds_meaning_is_a_word_an_address_or_an_object(said, means):
    assert search({"semantic": said}).semantic == means


def test_without_the_variable_of_its_address_no_embedding_server_is_guessed():
    document = {"search": {"semantic": {"provider": "openai", "url": "${NOWHERE}", "api_key": "k"}}}
    config = read({"mcpServers": {"a": {"command": "a"}}, **document})
    assert config.search.semantic == SemanticConfig()
    assert "search.semantic.url: the environment variable NOWHERE is not set" in config.warnings[0]


def test_a_model_that_is_off_is_none():
    assert search({"model": "off"}).model is None
    assert search({"model": ""}).model == "gemini-flash-lite-latest"


@pytest.mark.parametrize("expose", ["meta", "direct", "transparent"])
def test_a_config_says_how_tools_are_shown(expose):
    servers = {"a": {"command": "a"}, "off": {"command": "b", "disabled": True}}
    config = read({"mcpServers": servers, "expose": "${E}"}, E=expose)
    assert (config.expose, config.warnings) == (expose, ())
    assert read({"mcpServers": servers, "expose": {"mode": "${E}"}}, E=expose) == config


@pytest.mark.parametrize(
    ("expose", "split"),
    [
        ({"split": True}, True),
        ({"split": True, "mode": "meta"}, True),
        ({"split": True, "mode": ""}, True),
        ({"split": True, "mode": None}, True),
        ({"split": False}, False),
        ({"split": None}, False),
        ({}, False),
        ("meta", False),
        (None, False),
    ],
)
def test_execute_tool_is_split_where_the_config_says_so(expose, split):
    config = read({"mcpServers": {"a": {"command": "x"}}, "expose": expose})
    assert (config.expose, config.split, config.warnings) == ("meta", split, ())


@pytest.mark.parametrize(
    ("said", "transport"),
    [
        ("http", "http"),
        ("HTTP", "http"),
        ("streamableHttp", "http"),
        ("streamable_http", "http"),
        ("sse", "sse"),
        (" ", "http"),
    ],
)
def test_a_transport_is_known_by_every_name_in_use(said, transport):
    assert server(type=said, url="https://x.example").transport == transport


def test_variables_are_replaced_in_every_string():
    env = {"BIN": "/opt", "TOKEN": "t", "HOST": "x.example"}
    local = server(
        env,
        command="${BIN}/run",
        args=["--k=${TOKEN}", "$${TOKEN}"],
        env={"T": "${TOKEN}", "D": "${NONE:-d}"},
        cwd="${BIN}",
    )
    assert (local.command, local.args, local.cwd) == ("/opt/run", ("--k=t", "${TOKEN}"), "/opt")
    assert (dict(local.env), local.problem) == ({"T": "t", "D": "d"}, None)
    remote = server(
        env, type="${KIND:-sse}", url="https://${HOST}/mcp", headers={"Authorization": "Bearer ${TOKEN}"}
    )
    assert (remote.transport, remote.url) == ("sse", "https://x.example/mcp")
    assert remote.headers == {"Authorization": "Bearer t"}


def test_a_tilde_is_the_home_folder(isolated):
    here = {"HOME": "/home/me", "USERPROFILE": "/home/me"}
    found = server(here, command="~/bin/run", cwd="~/work", args=["~/not"])
    assert (found.command, found.cwd, found.args) == ("/home/me/bin/run", "/home/me/work", ("~/not",))


def test_the_key_in_the_environment_wins():
    document = {"mcpServers": {"a": {"command": "a"}}, "gemini_api_key": "from-file"}
    assert read(document).gemini_api_key == Secret("from-file")
    config = read(document, GEMINI_API_KEY="from-env")
    assert config.gemini_api_key is not None
    assert config.gemini_api_key.reveal() == "from-env"
    assert read(document, GEMINI_API_KEY="own\n").gemini_api_key == Secret("own")
    # Somebody who has a key for Google's maps has not asked us to send Google their tools.
    assert read(document, GOOGLE_API_KEY="googles").gemini_api_key == Secret("from-file")
    assert read(document, GEMINI_API_KEY=" ").gemini_api_key == Secret("from-file")
    assert read({**document, "gemini_api_key": ""}).gemini_api_key is None


def test_nothing_secret_shows():
    secret = "hunter2"
    document = {
        "gemini_api_key": secret,
        "search": {"semantic": {"url": f"https://me:{secret}@x.example?key={secret}", "api_key": secret}},
        "mcpServers": {
            "a": {"command": "a", "args": [secret], "env": {"K": secret, "=": secret}},
            "b": {"url": f"ftp://x.example?key={secret}", "headers": {"K": secret, "a b": secret}},
        },
    }
    config = read(document)
    shown = [repr(config), str(config.gemini_api_key), *config.warnings]
    shown += [f"{each.problem} {each.fingerprint}" for each in config.servers.values()]
    assert len(shown) == 4
    assert not [text for text in shown if secret in text]
    for place in ("args", "env", "headers"):
        document["mcpServers"] = {
            "a": {"command": "a", place: secret} if place != "headers" else {"url": "http://x", place: secret}
        }
        assert "found a string" in (problem := str(read(document).servers["a"].problem))
        assert secret not in problem
    for said in (
        f"htp://me:{secret}@x",
        f"http://me:{secret}@x:port",
        f"{secret} {secret}",
        {"url": f"x{secret}"},
    ):
        with pytest.raises(ConfigError) as raised:
            read({"search": {"semantic": said}})
        assert secret not in str(raised.value)


def test_secrets_are_equal_by_their_text():
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1


def test_a_fingerprint_changes_with_how_to_connect_and_nothing_else():
    base = server(command="a", args=["b"], env={"K": "v", "L": "w"})
    same = server(
        command="a",
        args=["b"],
        env={"L": "w", "K": "v"},
        disabled=True,
        timeout=3,
        tools={"deny": ["x"]},
        pin=["y"],
    )
    others = [
        server(command="a", args=["b", ""], env={"K": "v", "L": "w"}),
        server(command="a", args=["c"], env={"K": "v", "L": "w"}),
        server(command="ab", env={"K": "v", "L": "w"}),
        server(command="a", args=["b"], env={"K": "v2", "L": "w"}),
        server(command="a", args=["b"], env={"K": "v"}, cwd="/"),
        server(url="https://a.example"),
        server(type="sse", url="https://a.example"),
        server(url="https://a.example", headers={"K": "v"}),
    ]
    assert same.fingerprint == base.fingerprint
    assert len({base.fingerprint, *(other.fingerprint for other in others)}) == 1 + len(others)
    assert len(base.fingerprint) == 8


def test_a_fingerprint_is_of_what_is_written():
    """A client with other variables had all servers that use them listed anew."""

    def linear(environment, token="${TOKEN}", **keys):
        return server(environment, command="npx", args=["linear"], env={"TOKEN": token}, **keys).fingerprint

    here = linear({"TOKEN": "first account"})
    assert here == linear({"TOKEN": "second account"}) == linear({})
    assert here == linear({}, timeout=3, pin=True)
    others = [linear({}, token="${TOKEN:-none}"), linear({}, token="first account"), linear({}, cwd="/srv")]
    others.append(server({}, command="npx", args=["notion"], env={"TOKEN": "${TOKEN}"}).fingerprint)
    others.append(linear({}, inheritEnv=["A*"]))
    assert len({here, *others}) == 1 + len(others)


def test_the_variables_that_are_not_set_are_known():
    entries = {
        "a": {"command": "${A}", "args": ["${B}", "${A}", "${C:-c}", "${SET}"]},
        "b": {"url": "https://x.example", "headers": {"K": "${B}"}},
        "c": {"command": "c"},
    }
    servers = read({"mcpServers": entries}, SET="1").servers
    assert {name: each.unset for name, each in servers.items()} == {"a": ("A", "B"), "b": ("B",), "c": ()}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_a_file_is_read_as_editors_save_it(encoding):
    text = '{"mcpServers": {"a": {"command": "é"}}}'
    assert parse(text.encode(encoding), FILE, {}).servers["a"].command == "é"


@pytest.mark.parametrize(
    ("keys", "itself"),
    [
        ({"command": "mcpzip", "args": ["serve"]}, True),
        ({"command": "/usr/bin/mcpzip", "args": ["serve"]}, True),
        ({"command": "C:\\tools\\mcpzip.EXE", "args": ["serve"]}, True),
        ({"command": "python", "args": ["-m", "mcpzip", "serve"]}, True),
        ({"command": "uvx", "args": ["mcpzip@latest", "serve"]}, True),
        ({"command": "uvx", "args": ["--from", "mcpzip[gemini]==0.1", "mcpzip", "serve"]}, True),
        ({"command": "mcpzip", "args": ["serve", "--config", FILE]}, True),
        ({"command": "mcpzip", "args": [f"--config={FILE}", "serve"]}, True),
        ({"command": "mcpzip", "args": ["serve", "--config", "config.json"], "cwd": "/home/me"}, True),
        ({"command": "mcpzip", "args": ["serve"], "env": {"MCPZIP_CONFIG": FILE}}, True),
        ({"command": "mcpzip", "args": ["serve"], "env": {"MCPZIP_CONFIG": "/other.json"}}, False),
        ({"command": "mcpzip", "args": ["serve", "--config", "/other.json"]}, False),
        ({"command": "mcpzip", "args": ["serve", "--config"]}, True),
        ({"command": "mcpzip", "args": ["demo"]}, False),
        ({"command": "mcpzip-fake", "args": ["serve"]}, False),
        ({"command": "serve", "args": ["mcpzip"]}, False),
    ],
)
def test_a_server_that_is_this_proxy_again_is_not_started(keys, itself):
    # The original, migrated twice, had itself as its only server and started itself without end.
    found = server({"MCPZIP_CONFIG": FILE}, **keys)
    assert (found.problem is not None) == itself
    if found.problem is not None:
        assert found.problem.startswith("this is mcpzip itself")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(*reading.KEYS, *search_keys.KEYS, *search_keys.SEMANTIC_KEYS, *server_keys.KEYS),
                    *(*server_keys.OTHER_NAMES, *auth_keys.KEYS, *auth_keys.OTHER_NAMES),
                ]
            )
            | st.text(max_size=3),
            inner
            | st.sampled_from(
                [
                    *("stdio", "http", "https://x", "http://[", "off", "${A}", "${B:-c}", "${env:C}"),
                    *(5, True, "client_credentials", "a 'b", "a | b", ["a", "${A}"]),
                ]
            ),
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(
    JSON
    | st.fixed_dictionaries({"mcpServers": st.dictionaries(st.text("ab_", max_size=3), JSON, max_size=2)})
)
def test_any_json_is_a_config_or_one_sentence(document):
    try:
        config = read(document)
    except ConfigError as error:
        of_file, of_servers = [str(error)], []
    else:
        of_file = list(config.warnings)
        of_servers = [each.problem for each in config.servers.values() if each.problem]
        assert all(each.command or each.url or each.problem for each in config.servers.values())
    assert all(sentence.startswith(f"{FILE}: ") for sentence in of_file)
    assert not [sentence for sentence in of_servers if FILE in sentence]
    for sentence in (*of_file, *of_servers):
        assert sentence.endswith(".")
        assert "; " in sentence


@given(st.binary(max_size=60) | st.text("{}[]\",:\\\n '/0truenal", max_size=30).map(str.encode))
def test_any_bytes_are_a_config_or_one_sentence(data):
    try:
        parse(data, FILE, {})
    except ConfigError as error:
        sentences = [str(error)]
    else:
        sentences = [f"{FILE}: it is a config"]
    assert sentences[0].startswith(f"{FILE}: ")
