"""Where two handshakes, or two lists of one kind, differ (pure)."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import UNSET

from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.cassettes.messages import server_info_of
from mcpzip_fakes.drift.differences import differences, fits_mask
from mcpzip_fakes.drift.drift import Drift, Severity, was_and_is
from mcpzip_fakes.drift.schemas import schema_drifts
from mcpzip_fakes.request import as_object

LISTS: Mapping[str, tuple[str, str, str]] = {
    "tools/list": ("tools", "name", "tool"),
    "prompts/list": ("prompts", "name", "prompt"),
    "resources/list": ("resources", "uri", "resource"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate", "template"),
}
"""By method: the list in the result, what names an item, and what an item is called."""
_SCHEMAS = {"inputSchema": True, "outputSchema": False}
"""The members that are schemas, and whether a client writes what they describe."""
_TEXTS = ("description", "title")


def handshake_drifts(before: JsonObject, after: JsonObject, method: str) -> Iterator[Drift]:
    """Where two results of ``initialize`` or ``server/discover`` differ."""
    yield from server_info_drifts(before, after)
    for key in ("protocolVersion", "supportedVersions"):
        if before.get(key, UNSET) != after.get(key, UNSET):
            old, new = before.get(key, UNSET), after.get(key, UNSET)
            gone = key == "supportedVersions" and bool(_versions(old) - _versions(new))
            yield _catalog(
                "breaking" if gone else "changed", "protocol-version", "the handshake", key, old, new
            )
    old, new = before.get("instructions", UNSET), after.get("instructions", UNSET)
    if old != new and not fits_mask(old, new):
        yield _catalog("changed", "instructions", "the handshake", "instructions", old, new)
    yield from _capabilities(as_object(before.get("capabilities")), as_object(after.get("capabilities")))
    known = {"serverInfo", "protocolVersion", "supportedVersions", "instructions", "capabilities", "_meta"}
    yield from other_drifts(before, after, known, "the handshake", "handshake")


def _versions(value: object) -> set[str]:
    return {str(each) for each in value} if isinstance(value, list) else set()


def server_info_drifts(before: JsonObject, after: JsonObject) -> Iterator[Drift]:
    """Where the names and versions of two servers differ, in any two of their results."""
    old, new = server_info_of(before), server_info_of(after)
    for each in differences(old, new, _none):
        path = ".".join(("serverInfo", *each.path))
        yield _catalog("changed", "server-info", "the handshake", path, each.before, each.after)


def _none(path: tuple[str, ...]) -> bool:
    return False


def _capabilities(old: JsonObject, new: JsonObject) -> Iterator[Drift]:
    for each in differences(old, new, _none):
        path = ".".join(("capabilities", *each.path))
        if each.kind == "removed":
            yield _catalog("breaking", "capability-removed", "the handshake", path, each.before, UNSET)
        elif each.kind == "added":
            yield _catalog("added", "capability-added", "the handshake", path, UNSET, each.after)
        else:
            lost = each.before is True and each.after is False
            yield _catalog(
                "breaking" if lost else "changed",
                "capability-changed",
                "the handshake",
                path,
                each.before,
                each.after,
            )


def list_drifts(method: str, before: Sequence[JsonObject], after: Sequence[JsonObject]) -> Iterator[Drift]:
    """Where two lists differ: items removed, added, and changed."""
    _, key, kind = LISTS[method]
    old, new = ({str(item.get(key)): item for item in items} for items in (before, after))
    for name, item in old.items():
        place = f"{kind} {name}"
        if name not in new:
            yield Drift(
                severity="breaking",
                area="catalog",
                kind=f"{kind}-removed",
                place=place,
                what=f"the {kind} is gone",
                before=item,
            )
        else:
            yield from _item_drifts(kind, place, item, new[name])
    for name, item in new.items():
        if name not in old:
            yield Drift(
                severity="added",
                area="catalog",
                kind=f"{kind}-added",
                place=f"{kind} {name}",
                what=f"the {kind} is new",
                after=item,
            )


def _item_drifts(kind: str, place: str, before: JsonObject, after: JsonObject) -> Iterator[Drift]:
    for key, written in _SCHEMAS.items():
        old, new = before.get(key, UNSET), after.get(key, UNSET)
        if old is UNSET or new is UNSET:
            if old is not new:
                gone: Severity = "breaking" if new is UNSET else "added"
                yield _catalog(gone, f"{kind}-schema", place, key, old, new)
            continue
        for each in schema_drifts(old, new, key, written=written):
            yield Drift(
                severity=each.severity,
                area="catalog",
                kind=f"{kind}-{'input' if written else 'output'}-{each.kind}",
                place=place,
                path=each.path,
                what=each.what,
                before=each.before,
                after=each.after,
            )
    for key in _TEXTS:
        old, new = before.get(key, UNSET), after.get(key, UNSET)
        if old != new and not fits_mask(old, new):
            yield _catalog("changed", f"{kind}-{key}", place, key, old, new)
    known = {*_SCHEMAS, *_TEXTS}
    if kind == "prompt":
        known.add("arguments")
        yield from _argument_drifts(place, before.get("arguments"), after.get("arguments"))
    yield from other_drifts(before, after, known, place, kind)


def _argument_drifts(place: str, before: object, after: object) -> Iterator[Drift]:
    """Those of a prompt, which are a list of objects with names."""
    lists = (value if isinstance(value, list) else [] for value in (before, after))
    old, new = ({str(as_object(each).get("name")): as_object(each) for each in items} for items in lists)
    for name, argument in old.items():
        path = f"arguments.{name}"
        if name not in new:
            yield _catalog("breaking", "prompt-argument-removed", place, path, argument, UNSET)
        for each in differences(argument, new[name], _none) if name in new else ():
            needed = each.path == ("required",) and each.after is True
            yield _catalog(
                "breaking" if needed else "changed",
                "prompt-argument",
                place,
                ".".join((path, *each.path)),
                each.before,
                each.after,
            )
    for name, argument in new.items():
        if name not in old:
            severity: Severity = "breaking" if argument.get("required") is True else "added"
            yield _catalog(severity, "prompt-argument-added", place, f"arguments.{name}", UNSET, argument)


def other_drifts(
    before: JsonObject, after: JsonObject, known: set[str], place: str, kind: str
) -> Iterator[Drift]:
    """Where all other members of two items differ."""
    one, other = ({key: value for key, value in item.items() if key not in known} for item in (before, after))
    for each in differences(one, other, _none):
        severity: Severity = "added" if each.kind == "added" else "changed"
        what = "annotations" if each.path[0] == "annotations" else each.path[0].strip("_").lower()
        yield _catalog(severity, f"{kind}-{what}", place, ".".join(each.path), each.before, each.after)


def _catalog(severity: Severity, kind: str, place: str, path: str, before: object, after: object) -> Drift:
    return Drift(
        severity=severity,
        area="catalog",
        kind=kind,
        place=place,
        path=path,
        what=was_and_is(before, after),
        before=before,
        after=after,
    )
