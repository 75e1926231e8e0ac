"""Programs are read without running, and each call gets the form that its use needs."""

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.errors import InvalidArgumentsError
from mcpzip.model.limits import PROGRAM
from mcpzip.programs.source import AWAITED, VALUE, Program, is_tool_name, parse, python_name, read_program

CALL = "a__b(q=1)"
WAITED = f"a__b{AWAITED}(q=1)"


def read(code: str) -> Program:
    return read_program(parse(code))


@pytest.mark.parametrize(
    "code",
    [
        "x = await {}",
        "x = await asyncio.gather({}, 1)",
        "x = await asyncio.gather(*[{} for i in range(3)])",
        "x = await asyncio.gather(*({} for i in range(3)))",
        "x = await gather(*map(lambda i: {}, range(3)))",
        "task = {}\nx = await task",
        "x = asyncio.run({})",
        "waiting = []\nfor i in range(3):\n    waiting.append({})\nx = await asyncio.gather(*waiting)",
        "waiting = [{} for i in range(3)]\nfor each in waiting:\n    print(await each)",
        "waiting = {{i: {} for i in range(3)}}\nx = dict(zip(waiting, await gather(*waiting.values())))",
        "waiting = {{'a': {}}}\nfor key, each in waiting.items():\n    x = await each",
        "waiting = [1] + [{}]\nx = await gather(*waiting)",
        "x = await ({} if y else {})",
        "waiting = ({}, 1)\nx = await waiting[0]",
        "if (each := {}):\n    x = await each",
        "x = [await each for each in [{}]]",
        "async def f():\n    return await {}\nx = await f()",
        "async def f(each):\n    return await each\nx = await gather(*[f({}) for n in range(3)])",
        "async def f(n, *, each):\n    return await each\nx = await f(1, each={})",
        "def f(n):\n    return {}\nx = await gather(f(1), f(2))",
        "f = lambda n: {}\nx = await gather(f(1), f(2))",
    ],
)
def test_a_call_whose_result_is_awaited_is_asynchronous(code: str) -> None:
    calls = code.count("{}")
    program = read(code.format(*[CALL] * calls))
    assert program.form == code.format(*[WAITED] * calls)
    assert "a__b" in program.tools


@pytest.mark.parametrize(
    "code",
    [
        "f = {}\nx = await gather(f(q=1), f(q=2))",
        "async def f(tool, *more):\n    return await tool(*more)\nx = await f({}, 1)",
    ],
)
def test_a_tool_that_is_given_another_name_too(code: str) -> None:
    assert read(code.format("a__b")).form == code.format(f"a__b{AWAITED}")


@pytest.mark.parametrize(
    "code",
    [
        "x = {}",
        "x = [{} for i in range(3)]",
        "for each in {}:\n    print(each)",
        "def f():\n    return {}\nx = f()",
        "x = await c__d(q={})",
        "x = await gather(c__d(q={}), c__d(q=[{}]))",
        "x = await f({})",
        "y = {}\nasync def f():\n    return await c__d(y=y)",
        "x = {}['key']",
    ],
)
def test_any_other_call_is_not(code: str) -> None:
    text = code.format(*[CALL] * code.count("{}"))
    form = read(text).form
    assert f"a__b{AWAITED}" not in form
    assert form.replace(AWAITED, "") == text


@pytest.mark.parametrize(
    ("code", "form"),
    [
        ("1", f"{VALUE}((1))"),
        ("x = 1\nx", f"x = 1\n{VALUE}((x))"),
        ("return 1, 2", f"return {VALUE}((1, 2))"),
        ("return *a, 2", f"return {VALUE}((*a, 2))"),
        ("if x:\n    return 1\nelse:\n    return", f"if x:\n    return {VALUE}((1))\nelse:\n    return"),
        ("try:\n    f()\nexcept E:\n    return 1", f"try:\n    f()\nexcept E:\n    return {VALUE}((1))"),
        ("match x:\n    case 1:\n        return 1", f"match x:\n    case 1:\n        return {VALUE}((1))"),
        ("def f():\n    return 1\nf()", f"def f():\n    return 1\n{VALUE}((f()))"),
        ('"é", "é"  # é', f'{VALUE}(("é", "é"))  # é'),
        ("(\n    1\n)", f"(\n    {VALUE}((1))\n)"),
        ("x = 1", "x = 1"),
        ("", ""),
        ("a\r\nb", f"a\n{VALUE}((b))"),
    ],
)
def test_what_a_program_may_end_with_becomes_json(code: str, form: str) -> None:
    assert read(code).form == form


def test_the_names_that_it_gives_values_to() -> None:
    program = read(
        "import os.path as p, re\nfrom json import loads\nx = y = 1\nfor i, (j, k) in z:\n    w = 2\n"
        "with a as b:\n    pass\ndef g(q):\n    inner = 1\ntry:\n    pass\nexcept E as e:\n    v = 1\n"
        "s = [h for h in x]\nif (n := 1):\n    pass\nclass C:\n    pass\nd[0] = 1\n"
        "match x:\n    case 1:\n        m = 1"
    )
    assert program.imports == {"p", "re", "loads"}
    assert program.assigns - program.imports == set("xyijkwbgvsnCm")


def test_a_name_of_its_own_is_no_tool() -> None:
    program = read(
        "def own__tool(arg__x):\n    return arg__x\nset__x = 1\nown__tool(set__x)\na__b()\ncall('x')"
    )
    assert program.tools == ("a__b", "call")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a__b", True), ("a__", False), ("__b", False), ("__init__", False), ("a_b", False), ("a__b__c", True)],
)
def test_which_names_may_be_tools(name: str, expected: bool) -> None:
    assert is_tool_name(name) is expected


def test_names_of_tools_as_python_has_them() -> None:
    assert python_name("my-server__do.it") == "my_server__do_it"
    assert python_name("a__b") == "a__b"


DEEP = {
    "not": "not " * 8_000 + "1",
    "minus": "-" * 32_000 + "1",
    "lambda": "lambda:" * 4_500 + "1",
    "attribute": "a" + ".b" * 16_000,
    "power": "2**" * 10_000 + "2",
    "sum": "1+" * 16_000 + "1",
    "call": "f" + "()" * 16_000,
    "brackets": "[" * 16_000 + "]" * 16_000,
    "import": "import " + "a." * 16_000 + "a",
    "open": "f(",
    "statements": "x;" * 8_000,
    "braces": "f'" + "{x}" * 10_000 + "'",
    "number": "9" * 32_000,
    "nul": "a\0b",
    "surrogate": "'\ud800'",
    "long": "#" * (PROGRAM + 1),
    "indent": " x\n  y",
}


@pytest.mark.parametrize("shape", DEEP)
def test_what_cannot_be_read_is_an_error_that_says_that_nothing_ran(shape: str) -> None:
    with pytest.raises(InvalidArgumentsError, match=r"Nothing ran"):
        read(DEEP[shape])


@pytest.mark.parametrize(
    "line",
    [
        "t = asyncio.create_task(a__b())",
        "async with asyncio.TaskGroup() as t: pass",
        "x = await asyncio.gather(a__b(), return_exceptions=True)",
    ],
)
def test_what_asyncio_lacks_is_said_before_calls_are_made(line: str) -> None:
    with pytest.raises(InvalidArgumentsError, match=r"Line 3: .* Nothing ran\."):
        read(f"import asyncio\na__b()\n{line}")
    assert read(f"asyncio = a__b()\n{line}").tools == ("a__b",)


def test_an_error_of_syntax_names_its_line() -> None:
    with pytest.raises(InvalidArgumentsError, match=r"line 2: "):
        parse("x = 1\ndef (:\n")


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(code: str) -> None:
    try:
        program = read(code)
    except InvalidArgumentsError:
        return
    ast.parse(program.form)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.lists(st.tuples(st.sampled_from(["x", "é", "名"]), VALUES), max_size=5), VALUES, st.booleans())
def test_the_form_means_the_same_as_the_text(
    assignments: list[tuple[str, object]], value: object, awaits: bool
) -> None:
    """Run by Python itself, with the functions that the sandbox has."""
    lines = [f"{name} = {literal!r}" for name, literal in assignments]
    lines.append(f"[{'await ' if awaits else ''}a__b(q={value!r})]")
    program = read("\n".join(lines))
    code = compile(program.form, "form", "eval" if not lines[:-1] else "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    seen: list[str] = []

    async def awaited(q: object) -> object:
        return q

    names = {
        VALUE: lambda found: seen.append(json.dumps(found)),
        "a__b": lambda q: q,
        f"a__b{AWAITED}": awaited,
    }
    coroutine = eval(code, names)
    if coroutine is not None:
        with pytest.raises(StopIteration):
            coroutine.send(None)
    assert seen == [json.dumps([value])]
