"""Subject files: what is read, and the sentence for each mistake."""

from pathlib import Path

import pytest

from conformance.errors import SelectionError, SubjectError
from conformance.subject import FEATURES, Subject, names

GOOD = """
title = "p"
[start]
command = ["{python}", "{here}/p.py", "{config}"]
env = { P_HOME = "{home}/p" }
[config]
template = { servers = "{servers}" }
stdio = '{"cmd": "{argv}"}'
[tools]
names = "{server}.{tool}"
[lacks]
modern = "It is old."
"""
SEARCH = '[tools.search]\ntool = "s"\narguments = {}\nnames = "(x)"\n'


def load(tmp_path: Path, text: str) -> Subject:
    file = tmp_path / "p.toml"
    file.write_text(text, encoding="utf-8")
    return Subject.load(file)


def test_a_subject_is_read(tmp_path: Path) -> None:
    subject = load(tmp_path, GOOD)
    assert (subject.id, subject.title) == ("p", "p")
    assert subject.start.command == ("{python}", f"{tmp_path.resolve()}/p.py", "{config}")
    assert subject.shown("shop", "pay") == "shop.pay"


def test_the_shipped_ones_can_be_used() -> None:
    assert names() == ["direct", "mcpzip"]
    for name in names():
        assert Subject.load(name).missing().keys() <= FEATURES.keys()


def test_what_is_missing_follows_from_the_file(tmp_path: Path) -> None:
    missing = load(tmp_path, GOOD).missing()
    assert missing["modern"] == "It is old."
    assert missing.keys() == {"modern", "meta-tools", "search", "search-limit"}
    assert "several-servers" in Subject.load("direct").missing()
    assert Subject.load("mcpzip").missing() == {}


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
    assert load(tmp_path, good).missing().keys() == {"modern", "describe", "search-limit"}
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
        ('"p"', "config: it is missing; say how to write the config, or put {upstream} into start.command."),
    ],
)
def test_without_a_config_the_server_goes_on_the_command_line(
    tmp_path: Path, command: str, says: str
) -> None:
    with pytest.raises(SubjectError) as caught:
        load(tmp_path, f'title = "p"\nstart = {{ command = [{command}] }}\n[tools]\nnames = "{{tool}}"\n')
    assert says in str(caught.value)


def test_no_such_subject() -> None:
    with pytest.raises(SelectionError, match="There is no subject 'nobody': give a"):
        Subject.load("nobody")
    with pytest.raises(SubjectError, match="it can't be read"):
        Subject.load("nobody.toml")
