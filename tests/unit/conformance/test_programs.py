"""Programs of the checks, in the language and with the words of a subject."""

import json
from pathlib import Path

import pytest
from mcpzip_conformance.errors import SubjectError
from mcpzip_conformance.program import LANGUAGES, ProgramWriter
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.route import Route
from mcpzip_conformance.subject import Subject

BASE = """
title = "p"
[start]
command = ["p", "{config}"]
[config]
template = { servers = "{servers}" }
stdio = { cmd = "{argv}" }
[tools]
names = "{server}__{tool}"
[tools.program]
tool = "run_code"
arguments = { code = "{code}", timeout = 5 }
"""
NAMED = """
language = "python"
call = "{server}__{tool}({keywords})"
"""
BY_FUNCTION = """
language = "python"
call = "await call_tool('{name}', {arguments})"
returns = "result = {value}"
"""
ENVELOPES = """
language = "javascript"
call = "call_tool('{server}', '{tool}', {arguments})"
value = "JSON.parse({value}.result.content[0].text)"
failed = "!{value}.ok"
returns = "({value})"
each = "{server: '{server}', tool: '{tool}', args: {arguments}}"
together = "call_tools([{calls}])"
"""
RESUME = """
[tools.program.resume]
tool = "execute_tool"
arguments = { name = "{name}", arguments = "{arguments}", run = "{handle}" }
handle = 'run="(p[0-9]+)"'
"""


def route_of(tmp_path: Path, text: str) -> Route:
    file = tmp_path / "p.toml"
    file.write_text(BASE + text, encoding="utf-8")
    return Route(Subject.load(file))


def reply(text: str) -> Reply:
    return Reply(json.dumps({"content": [{"type": "text", "text": text}]}).encode())


def test_a_tool_is_a_function_with_its_arguments_by_name(tmp_path: Path) -> None:
    writer = ProgramWriter(route_of(tmp_path, NAMED))
    call = writer.call("shop", "pay", id=7, note='it\'s "{so}"', paid=True, by=None)
    assert call == "shop__pay(id=7, note='it\\'s \"{so}\"', paid=True, by=None)"
    assert writer.program(writer.assigned("x", call), writer.returned("x")) == f"x = {call}\nreturn x"
    assert writer.value("x") == "x"
    assert not writer.can_call_together
    gather = ProgramWriter(route_of(tmp_path, NAMED + 'together = "await asyncio.gather({calls})"'))
    together = gather.together("x", "shop", "pay", [{"n": 1}, {"n": 2}])
    assert together == "import asyncio\nx = await asyncio.gather(shop__pay(n=1), shop__pay(n=2))"


def test_a_tool_is_called_by_a_function(tmp_path: Path) -> None:
    writer = ProgramWriter(route_of(tmp_path, BY_FUNCTION))
    assert writer.call("shop", "pay", ids=[1, None]) == "await call_tool('shop__pay', {'ids': [1, None]})"
    assert writer.returned("x") == "result = x"
    caught = writer.caught("x", writer.call("shop", "pay"), "no")
    assert caught == "try:\n    x = await call_tool('shop__pay', {})\nexcept Exception:\n    x = 'no'"


def test_a_call_has_an_envelope_that_says_whether_it_failed(tmp_path: Path) -> None:
    writer = ProgramWriter(route_of(tmp_path, ENVELOPES))
    assert writer.call("shop", "pay", yes=True) == "call_tool('shop', 'pay', {\"yes\": true})"
    assert writer.value("x") == "JSON.parse(x.result.content[0].text)"
    caught = writer.caught("x", "f()", "no")
    assert caught == 'var x = f(); if (!x.ok) {x = "no";}'
    assert writer.returned("x") == "(x)"
    assert writer.can_call_together
    together = writer.together("x", "shop", "pay", [{"n": 1}, {"n": 2}])
    calls = ", ".join(f"{{server: 'shop', tool: 'pay', args: {{\"n\": {n}}}}}" for n in (1, 2))
    assert together.strip() == f"var x = call_tools([{calls}]);"


def test_a_language_catches_errors_and_fails() -> None:
    python, javascript = LANGUAGES["python"], LANGUAGES["javascript"]
    code = "\n".join((python.assigns, python.catches, python.replaces))
    for name, expression in (("x", "f()"), ("y", "g()")):
        compile(
            code.replace("{name}", name)
            .replace("{expression}", expression)
            .replace("{otherwise}", "'no'")
            .replace("{failed}", "False"),
            "program",
            "exec",
        )
    with pytest.raises(ValueError, match="stop"):
        exec(python.fails)
    assert javascript.fails == "throw new Error('stop');"


def test_the_params_that_run_and_resume_a_program(tmp_path: Path) -> None:
    route = route_of(tmp_path, NAMED + RESUME)
    assert json.loads(route.program("return 1")) == {
        "name": "run_code",
        "arguments": {"code": "return 1", "timeout": 5},
    }
    more = route.resumed(reply('Go on with run="p3".'), "shop", "pay", b'{"id":7}')
    assert more is not None
    assert json.loads(more) == {
        "name": "execute_tool",
        "arguments": {"name": "shop__pay", "arguments": {"id": 7}, "run": "p3"},
    }
    assert route.resumed(reply("It is done."), "shop", "pay", b"{}") is None
    assert route_of(tmp_path, NAMED).resumed(reply('run="p3"'), "shop", "pay", b"{}") is None


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"python"', '"perl"', "language is 'perl'; write python or javascript."),
        ("{keywords}", "", "tools.program.call: the place {arguments} is missing; put it, or {keywords}"),
        ("{server}__{tool}(", "f(", "tools.program.call: the place {name} is missing; put it where"),
        ("({keywords})", "({words})", "tools.program.call: there is no place {words} here;"),
        ('"{code}"', '"{program}"', "there is no place {program} here; the places are {code}."),
        ('code = "{code}", ', "", "tools.program.arguments: the place {code} is missing; put it where"),
        ("(p[0-9]+)", "p[0-9]+", "tools.program.resume.handle: the expression has 0 groups;"),
        ('"{handle}"', '"{run}"', "tools.program.resume.arguments: there is no place {run} here;"),
        ("language", "returns = '1'\nlanguage", "tools.program.returns: the place {value} is missing;"),
        ("language", "together = '[]'\nlanguage", "tools.program.together: the place {calls} is missing;"),
        ("language", "each = '{name}'\nlanguage", "tools.program.together: it is missing beside each;"),
        (
            "language",
            "languages = 1\nlanguage",
            "there is no key 'languages' here; the nearest is 'language'",
        ),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path: Path, old: str, new: str, says: str) -> None:
    text = BASE + NAMED + RESUME
    assert old in text
    file = tmp_path / "p.toml"
    file.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(SubjectError) as caught:
        Subject.load(file)
    assert says in str(caught.value)
