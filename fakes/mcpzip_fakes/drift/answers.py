"""Where two answers to a request differ (pure)."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from msgspec import UNSET

from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.cassettes.messages import INPUT_REQUIRED, SERVER_INFO, Message
from mcpzip_fakes.drift.differences import (
    Difference,
    Ignored,
    Path,
    differences,
    json_type,
    shape_differences,
)
from mcpzip_fakes.drift.drift import Drift, Severity, shown, was_and_is
from mcpzip_fakes.request import as_object

MOST = 20
"""Differences of one answer that are told; of more only that there are more."""
_LISTS = ("content", "contents", "messages")
"""The members of a result that are lists of blocks."""
_OPAQUE = {("nextCursor",), ("requestState",)}
"""Values that only the server understands: whether there is one counts, not which."""


class Compared(NamedTuple):
    """How answers are compared. place: what a drift names. ignored: into the result. shape: by shape."""

    place: str
    ignored: Ignored
    shape: bool


def answer_drifts(before: Message, after: Message, how: Compared) -> Iterator[Drift]:
    """Where two answers differ."""
    if before.error is not None or after.error is not None:
        yield from _error_drifts(before.error, after.error, how)
        return
    old, new = before.result, after.result
    if not isinstance(old, dict) or not isinstance(new, dict):
        found = list(differences(old, new, how.ignored))
        yield from (_told(each, how) for each in islice(found, MOST))
        return
    if (old.get("isError") is True) != (new.get("isError") is True):
        yield from _is_error(old, new, how)
        return
    asks = [result.get("resultType") == INPUT_REQUIRED for result in (old, new)]
    if asks[0] != asks[1]:
        wanted = shown(sorted(as_object((old if asks[0] else new).get("inputRequests"))))
        yield _answer(
            "changed",
            "question-missing" if asks[0] else "question-new",
            how.place,
            f"no longer asks for input: {wanted}" if asks[0] else f"asks for input now: {wanted}",
        )
        return
    yield from _result_drifts(_without_server(old), _without_server(new), how)


def _error_drifts(old: JsonObject | None, new: JsonObject | None, how: Compared) -> Iterator[Drift]:
    if old is None and new is not None:
        said = f"is an error now: {new.get('code')} {shown(new.get('message'))}"
        yield _answer("breaking", "became-error", how.place, said, "error", UNSET, new)
    elif new is None and old is not None:
        said = f"was error {old.get('code')} {shown(old.get('message'))}, is a result now"
        yield _answer("changed", "became-result", how.place, said, "error", old, UNSET)
    elif old is not None and new is not None:
        if old.get("code") != new.get("code"):
            pair = (old.get("code"), new.get("code"))
            yield _answer("breaking", "error-code", how.place, was_and_is(*pair), "error.code", *pair)
        one, other = ({key: value for key, value in error.items() if key != "code"} for error in (old, new))
        compare = shape_differences if how.shape else differences
        for each in islice(compare(one, other, lambda path: how.ignored(("error", *path))), MOST):
            path = ".".join(("error", *each.path))
            yield _answer(
                "added" if each.kind == "added" else "changed",
                "error-text" if each.path[0] == "message" else "error-data",
                how.place,
                was_and_is(each.before, each.after),
                path,
                each.before,
                each.after,
            )


def _is_error(old: JsonObject, new: JsonObject, how: Compared) -> Iterator[Drift]:
    failed = new.get("isError") is True
    said = f"fails now: {_first_text(new)}" if failed else f"failed ({_first_text(old)}), succeeds now"
    kind = "became-error" if failed else "became-result"
    yield _answer("breaking" if failed else "changed", kind, how.place, said, "isError", not failed, failed)


def _first_text(result: JsonObject) -> str:
    blocks = result.get("content")
    texts = [as_object(block).get("text") for block in blocks] if isinstance(blocks, list) else []
    return shown(next((text for text in texts if isinstance(text, str)), ""))


def _without_server(result: JsonObject) -> JsonObject:
    """``result`` without the server's name and version, which belong to the catalog."""
    meta = as_object(result.get("_meta"))
    if SERVER_INFO not in meta:
        return result
    rest = {key: value for key, value in meta.items() if key != SERVER_INFO}
    return {**{key: value for key, value in result.items() if key != "_meta"}, "_meta": rest}


def _result_drifts(old: JsonObject, new: JsonObject, how: Compared) -> Iterator[Drift]:
    other_types = set()
    for key in _LISTS:
        for place, before, after in _types(old.get(key), new.get(key), how.shape):
            path = (key, *place)
            if not how.ignored(path):
                other_types.add(path)
                said = was_and_is(before, after)
                yield _answer(
                    "added" if before is UNSET else "breaking",
                    "content-type",
                    how.place,
                    said,
                    ".".join(path),
                    before,
                    after,
                )

    def ignored(path: Path) -> bool:
        return how.ignored(path) or any(path[: len(each)] == each for each in other_types)

    compare = shape_differences if how.shape else differences
    found = list(islice(compare(old, new, ignored), MOST + 1))
    for each in found[:MOST]:
        if each.path not in _OPAQUE or each.kind in ("added", "removed"):
            yield _told(each, how)
    if len(found) > MOST:
        yield _answer("changed", "answer-value", how.place, "differs in more places, which aren't told")


def _types(old: object, new: object, shape: bool) -> Iterator[tuple[Path, object, object]]:
    """Where the types of blocks differ: by index; by shape, which types there are at all."""
    if not isinstance(old, list) or not isinstance(new, list):
        return
    types = [[_type(block) for block in blocks] for blocks in (old, new)]
    if shape:
        for kind in sorted(set(types[0]) - set(types[1])):
            yield ("*",), kind, UNSET
        for kind in sorted(set(types[1]) - set(types[0])):
            yield ("*",), UNSET, kind
        return
    for number, (one, other) in enumerate(zip(*types, strict=False)):
        if one != other:
            yield (str(number),), one, other


def _type(block: object) -> str:
    """The type of a content block; of a resource's content which member has it; of a message that of its
    content."""
    found = as_object(block)
    found = as_object(found.get("content")) or found
    kind = found.get("type")
    return kind if isinstance(kind, str) else "blob" if "blob" in found else "text"


def _told(each: Difference, how: Compared) -> Drift:
    severity: Severity = "changed"
    kind = "answer-value"
    said = was_and_is(each.before, each.after)
    if each.kind == "removed":
        severity, kind = "breaking", "answer-removed"
        if how.shape:
            said = "is gone, or not always there"
    elif each.kind == "added":
        severity, kind = "added", "answer-added"
        if how.shape:
            said = "is new"
    elif each.kind == "type":
        severity, kind = "breaking", "answer-type"
        if not how.shape:
            said = f"was {json_type(each.before)} {shown(each.before)}, is {json_type(each.after)}"
            said += f" {shown(each.after)}"
    return _answer(severity, kind, how.place, said, ".".join(each.path), each.before, each.after)


def _answer(
    severity: Severity,
    kind: str,
    place: str,
    what: str,
    path: str = "",
    before: object = UNSET,
    after: object = UNSET,
) -> Drift:
    return Drift(
        severity=severity,
        area="answers",
        kind=kind,
        place=place,
        path=path,
        what=what,
        before=before,
        after=after,
    )
