"""Subject files: what is read, and the sentence for each mistake."""

import json
from pathlib import Path

import pytest
from helpers.subject_files import GOOD, HTTP, TEAM, load
from hypothesis import given
from hypothesis import strategies as st
from mcpzip_conformance.errors import SelectionError, SubjectError
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.route import Route
from mcpzip_conformance.subject import FEATURES, Subject, load_all, names
from mcpzip_conformance.variants import merged

OFFERS = {"prompts", "resources", "subscriptions", "shared", "rest", "programs"} | TEAM
SEARCH = '[tools.search]\ntool = "s"\narguments = {}\nnames = "(x)"\n'


def test_a_subject_is_read(tmp_path: Path) -> None:
    subject = load(tmp_path, GOOD)
    assert (subject.id, subject.title) == ("p", "p")
    assert subject.start.command == ("{python}", f"{tmp_path.resolve()}/p.py", "{config}")
    assert subject.shown("shop", "pay") == "shop.pay"


def test_the_shipped_ones_can_be_used() -> None:
    assert {"direct", "direct-http", "mcpzip"} <= set(names())
    for name in names():
        for subject in load_all(name):
            assert subject.missing().keys() <= FEATURES.keys()
            assert subject.family == name


DESCRIBE = """
[tools.call]
tool = "run"
arguments = { name = "{name}", arguments = "{arguments}" }
[tools.describe]
tool = "show"
arguments = { name = "{name}" }
"""


def test_a_definition_is_found_among_those_of_a_whole_server(tmp_path: Path) -> None:
    text = GOOD.replace("[lacks]", DESCRIBE + r"definition = '(?s)\A(\[.*\])\Z'" + "\n[lacks]")
    route = Route(load(tmp_path, text))
    both = r'[{"name": "a", "x": 1}, {"x": 2, "name": "\u0062"}]'
    reply = Reply(json.dumps({"content": [{"type": "text", "text": both}]}).encode())
    assert route.defines
    assert route.definition(reply, "a") == b'{"name": "a", "x": 1}'
    assert route.definition(reply, "b") == rb'{"x": 2, "name": "\u0062"}'
    assert route.definition(reply, "c") is None


def test_a_tool_can_be_shown_in_a_form_of_its_own(tmp_path: Path) -> None:
    refresh = '[tools.refresh]\ntool = "again"\narguments = {}\n'
    subject = load(tmp_path, GOOD.replace("[lacks]", DESCRIBE + refresh + "[lacks]"))
    route = Route(subject)
    assert subject.missing()["describe"] == "It shows a definition in a form of its own."
    assert not route.defines
    assert route.describe("shop", "pay") == b'{"name":"show","arguments":{"name":"shop.pay"}}'
    assert route.refresh() == b'{"name":"again","arguments":{}}'
    assert Route(load(tmp_path, GOOD)).refresh() is None


def test_mcpzip_is_run_in_every_way() -> None:
    assert [subject.id.partition(":")[2] for subject in load_all("mcpzip")] == [
        "meta",
        "direct",
        "transparent",
        "meta-http",
        "direct-http",
        "transparent-http",
        "meta-daemon",
        "code",
        "code-http",
        "replicas",
        "replicas-redis",
    ]


def test_what_is_missing_follows_from_the_file(tmp_path: Path) -> None:
    missing = load(tmp_path, GOOD).missing()
    assert missing["modern"] == "It is old."
    assert missing.keys() == OFFERS | {"modern", "http", "meta-tools", "search", "search-limit"}
    assert "several-servers" in Subject.load("direct").missing()
    assert Subject.load("mcpzip:meta").missing().keys() == {"http", "shared", "programs"} | TEAM
    assert Subject.load("mcpzip:meta-http").missing().keys() == {"stdio", "programs"} | TEAM
    assert Subject.load("mcpzip:replicas").missing().keys() & TEAM == {"versions", "store"}
    assert Subject.load("mcpzip:replicas-redis").missing().keys() & TEAM == {"versions"}
    assert TEAM.isdisjoint(Subject.load("relay:names-gateway").missing())
    assert {"rest", "programs"}.isdisjoint(Subject.load("relay:code").missing())
    assert "shared" not in load(tmp_path, GOOD + "[shared]\n").missing()
    hidden = load(tmp_path, GOOD.replace("[lacks]", "hidden = true\n[lacks]")).missing()
    assert hidden["describe"] == "Its list shows no tools of its servers."


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('title = "p"', "", "the key 'title' is missing; add it."),
        ('title = "p"', 'titel = "p"', "there is no key 'titel' here; "),
        ('title = "p"', "title = 7", "title: a whole number stands here; write a string."),
        ('[tools]\nnames = "{server}.{tool}"', "", "the key 'tools' is missing; add it."),
        ("{server}.{tool}", "{server}", "tools.names: the place {tool} is missing; put it where"),
        ("{server}.{tool}", "{srv}{tool}", "there is no place {srv} here; the places are {server}, {tool}."),
        ('"{config}"]', '"x"]', "start.command: nothing in start uses {config}; say where"),
        ("{servers}", "servers", "config.template: the place {servers} is missing; put it where"),
        ('{"cmd": "{argv}"}', '{"cmd"', "config.stdio: it is not JSON"),
        ('{"cmd": "{argv}"}', "7", "config.stdio: it is neither a table nor a JSON object or list;"),
        ("stdio =", "studio =", "config: there is no key 'studio' here; "),
        ("stdio = '{\"cmd\": \"{argv}\"}'", "", "config: no transport has an entry; add one of stdio,"),
        ("[config]", '[config]\nservers = "rows"', "servers is 'rows'; write object or list."),
        ('modern = "It is old."', 'teleport = "No."', "lacks.teleport: there is no such feature;"),
        ('modern = "It is old."', 'modern = " "', "lacks.modern: it is empty; say why in a sentence."),
        ("[lacks]", "[shared]\nprocesses = 'two'\n[lacks]", "processes is 'two'; write one, per-client"),
        ("[lacks]", "[shared]\nserver = 1\n[lacks]", "shared: there is no key 'server' here; "),
        ("[lacks]", SEARCH + "[lacks]", "tools.call: it is missing beside search"),
        ("[lacks]", "[lacks", "correct the syntax."),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in GOOD
    with pytest.raises(SubjectError) as caught:
        load(tmp_path, GOOD.replace(old, new))
    text = str(caught.value)
    assert says in text
    assert text.startswith(str(tmp_path / "p.toml"))
    assert text.endswith(".")
    assert "\n" not in text


META = """
[tools.call]
tool = "run"
arguments = { tool = "{name}", arguments = "{arguments}" }
[tools.search]
tool = "find"
arguments = { query = "{query}" }
names = "^(x)"
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("{arguments}", "{name}", "tools.call.arguments: the place {arguments} is missing"),
        ("{query}", "{words}", "tools.search.arguments: there is no place {words} here"),
        ("^(x)", "^x", "tools.search.names: the expression has 0 groups; put one pair of parentheses"),
        ("^(x)", "(", "tools.search.names: it is no regular expression"),
        ('tool = "find"', "", "tools.search: the key 'tool' is missing; add it."),
    ],
)
def test_a_mistake_in_the_meta_tools_too(tmp_path: Path, old: str, new: str, says: str) -> None:
    good = GOOD + META
    assert load(tmp_path, good).missing().keys() == OFFERS | {"modern", "http", "describe", "search-limit"}
    with pytest.raises(SubjectError, match=r"p\.toml") as caught:
        load(tmp_path, GOOD + META.replace(old, new, 1))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (
            '"{upstream}", "{config}"',
            "config: it is missing and start uses {config}; say how to write the config.",
        ),
        (
            '"p"',
            "config: it is missing; say how to write the config, or put {upstream} or {url} into "
            "start.command.",
        ),
    ],
)
def test_without_a_config_the_server_goes_on_the_command_line(
    tmp_path: Path, command: str, says: str
) -> None:
    with pytest.raises(SubjectError) as caught:
        load(tmp_path, f'title = "p"\nstart = {{ command = [{command}] }}\n[tools]\nnames = "{{tool}}"\n')
    assert says in str(caught.value)


def test_a_subject_over_http_before_servers_on_http(tmp_path: Path) -> None:
    subject = load(tmp_path, HTTP)
    assert subject.upstream == "http"
    lacks = {"stdio", "shared", "owns-servers", "meta-tools", "search", "search-limit", "rest", "programs"}
    assert subject.missing().keys() == lacks | TEAM
    assert (subject.shown("s", "t"), subject.shown("s", "t", alone=True)) == ("s.t", "t")
    assert subject.prompt("s", "t", alone=True) == "s.t"
    assert subject.uri("s", "file:///a") == "p://s/file//a"
    assert subject.uri("s", "file:///a", alone=True) == "file:///a"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            'url = "http://127',
            'url = "ftp://127',
            "start.url: 'ftp://127.0.0.1:{port}/mcp' is no http",
        ),
        (', "--port", "{port}"', "", "start.command: nothing in start uses {port}, and start.url does;"),
        ('url = "http://127.0.0.1:{port}/mcp"\n', "", "start.url: it is missing beside start.up;"),
        ("ready at (.*)", "ready at (", "start.up: it is no regular expression"),
        ("ready at (.*)", "(ready) at (.*)", "start.up: the expression has 2 groups;"),
        ('"p", "{config}"', '"{bin}/p", "{config}"', "install: it is missing and start uses {bin};"),
        (
            'url = "http://127.0.0.1:{port}/mcp"\nup = "ready at (.*)"',
            "",
            "start.url: it is missing and start uses",
        ),
        (
            'http://127.0.0.1:{port}/mcp"\nup = "ready at (.*)"',
            'http://127.0.0.1/mcp"',
            "start.url: it has no {port},",
        ),
        (
            '"p", "{config}"',
            '"p", "x{upstream}", "{config}"',
            "start.command: {upstream} stands within a word;",
        ),
        (
            '"p", "{config}"',
            '"p", "{upstream}", "{config}"',
            "start.command: {upstream} stands beside a config;",
        ),
        ('upstream = "http"', 'upstream = "sse"', "config.upstream: sse has no entry; add config.sse."),
        ('upstream = "http"', 'upstream = "ftp"', "upstream is 'ftp'; write stdio, http, sse."),
        ('"{server}.{prompt}"', '"{server}"', "prompts.names: the place {prompt} is missing;"),
        ('"{uri}"', '"{path}"', "resources.alone: there is no place {path} here;"),
    ],
)
def test_a_mistake_in_what_is_about_http_too(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in HTTP
    with pytest.raises(SubjectError) as caught:
        load(tmp_path, HTTP.replace(old, new))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("install", "says"),
    [
        ("", "install: it has no packages; name the packages of one registry: pip (PyPI) or npm."),
        ('pip = ["p==1"]\nnpm = ["p@1.0.0"]', "install: it has packages of both;"),
        ('pip = ["p==1"]\nlock = "p.json"', "install.lock: it stands without install.npm;"),
        ('npm = ["p@^1.0.0"]', "install.npm: 'p@^1.0.0' is not NAME@VERSION with one version,"),
        ('npm = ["p@latest"]', "install.npm: 'p@latest' is not NAME@VERSION"),
        ('npm = ["p@git+ssh://example.org/p"]', "install.npm: 'p@git+ssh://example.org/p' is not"),
        ('npm = ["@a/b/c@1.0.0"]', "install.npm: '@a/b/c@1.0.0' is not"),
        ('npm = ["../p@1.0.0"]', "install.npm: '../p@1.0.0' is not"),
    ],
)
def test_a_mistake_in_what_is_installed(tmp_path: Path, install: str, says: str) -> None:
    with pytest.raises(SubjectError) as caught:
        load(tmp_path, f"{GOOD}\n[install]\n{install}\n")
    assert says in str(caught.value)


def test_packages_of_npm_have_a_place_and_a_lock_beside_the_file(tmp_path: Path) -> None:
    text = GOOD.replace('"{here}/p.py"', '"{packages}/@a/p/p.js"')
    assert text != GOOD
    with pytest.raises(SubjectError, match=r"install\.npm: it is missing and start uses \{packages\};"):
        load(tmp_path, text)
    subject = load(tmp_path, f'{text}\n[install]\nnpm = ["@a/p@1.0.0-rc.1"]\nlock = "locks/p.json"\n')
    assert subject.install is not None
    assert subject.install.pins == ("@a/p@1.0.0-rc.1",)
    assert subject.install.lock == str(tmp_path.resolve() / "locks" / "p.json")


def test_the_server_may_be_named_in_the_environment(tmp_path: Path) -> None:
    subject = load(
        tmp_path,
        'title = "p"\n[start]\ncommand = ["p"]\nenv = { TARGET = "{url}" }\n[tools]\nnames = "{tool}"\n',
    )
    assert subject.upstream == "http"


# Variants

FAMILY = (
    GOOD
    + """
[variants]
plain = []
dotted = ["dots"]
both = ["dots", "modern"]
[layers.dots]
tools.names = "{server}.{tool}.x"
[layers.modern]
lacks.modern = "It is young."
"""
)


def test_a_variant_is_the_file_with_its_layers_over_it(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(FAMILY, encoding="utf-8")
    plain, dotted, both = load_all(file)
    assert [subject.id for subject in (plain, dotted, both)] == ["p:plain", "p:dotted", "p:both"]
    assert [subject.title for subject in (plain, dotted, both)] == ["p plain", "p dotted", "p both"]
    assert (plain.shown("s", "t"), dotted.shown("s", "t")) == ("s.t", "s.t.x")
    assert both.missing()["modern"] == "It is young."
    assert load_all(f"{file}:dotted") == (dotted,)
    with pytest.raises(SelectionError, match=r"no variant 'none' of .*; the variants: plain, dotted, both"):
        load_all(f"{file}:none")
    with pytest.raises(SelectionError, match="has several variants: name one of p:plain, p:dotted, p:both"):
        Subject.load(file)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[variants]\nplain = []", "[variants]\nplain = 7", "variants.plain: it is no list of layers;"),
        (
            '["dots"]',
            '["dashes"]',
            "variants.dotted: there is no layer 'dashes'; the layers are: dots,",
        ),
        ('["dots", "modern"]', '["dots"]', "layers.modern: no variant uses it; name it in a variant"),
        (
            '[variants]\nplain = []\ndotted = ["dots"]\nboth = ["dots", "modern"]',
            "",
            "layers: it stands",
        ),
        ("{server}.{tool}.x", "{server}", "(variant dotted): tools.names: the place {tool} is missing"),
    ],
)
def test_a_mistake_in_variants(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in FAMILY
    file = tmp_path / "p.toml"
    file.write_text(FAMILY.replace(old, new), encoding="utf-8")
    with pytest.raises(SubjectError) as caught:
        load_all(file)
    assert says in str(caught.value)


TABLES = st.recursive(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 2), max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), st.integers(0, 2) | inner, max_size=3),
    max_leaves=6,
)


@given(TABLES, TABLES)
def test_what_lies_above_wins_and_all_else_stays(under: dict[str, object], over: dict[str, object]) -> None:
    made = merged(under, over)
    assert made.keys() == under.keys() | over.keys()
    for key in made:
        one, other = under.get(key), over.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            assert made[key] == merged(one, other)
        else:
            assert made[key] == (other if key in over else one)
    assert merged(made, over) == made


def test_no_such_subject() -> None:
    with pytest.raises(SelectionError, match="There is no subject 'nobody': give a"):
        Subject.load("nobody")
    with pytest.raises(SubjectError, match="it can't be read"):
        Subject.load("nobody.toml")
