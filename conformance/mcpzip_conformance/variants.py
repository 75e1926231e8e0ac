"""Several subjects in one file: a proxy and its variants.

    [variants]
    direct = []
    meta-http = ["meta", "http"]

    [layers.meta.tools.call]
    tool = "execute_tool"

The rule: a variant is the rest of the file with its layers merged over it, in order: tables key by key,
anything else replaced. Its id is ``FILE:VARIANT``, and its title ends with the variant.
"""

from collections.abc import Iterator, Mapping

from mcpzip_conformance.errors import SubjectError

Table = dict[str, object]


def members(data: Mapping[str, object], source: str) -> Iterator[tuple[str, Table]]:
    """Each subject in a file's ``data``: its variant's name, "" if the file has none, and its own table.
    SubjectError names ``source`` and the key."""
    base = {key: value for key, value in data.items() if key not in ("variants", "layers")}
    variants, layers = data.get("variants"), data.get("layers", {})
    if variants is None:
        if layers:
            raise SubjectError(
                source, "layers", "it stands without variants", "say which variant uses which layer"
            )
        yield "", base
        return
    if not isinstance(variants, dict) or not variants:
        raise SubjectError(source, "variants", "it is no table of variants", 'write NAME = ["layer", …]')
    if not isinstance(layers, dict):
        raise SubjectError(source, "layers", "it is no table of layers", "write [layers.NAME.…]")
    for variant, named in variants.items():
        path = f"variants.{variant}"
        if not isinstance(named, list):
            raise SubjectError(source, path, "it is no list of layers", 'write ["layer", …]')
        made = base
        for name in named:
            layer = layers.get(name) if isinstance(name, str) else None
            if not isinstance(layer, dict):
                known = ", ".join(layers) or "none"
                raise SubjectError(source, path, f"there is no layer {name!r}", f"the layers are: {known}")
            made = merged(made, layer)
        yield variant, {**made, "title": f"{made['title']} {variant}"} if "title" in made else made
    unused = set(layers) - {name for named in variants.values() for name in named}
    if unused:
        layer = sorted(unused)[0]
        raise SubjectError(
            source, f"layers.{layer}", "no variant uses it", "name it in a variant, or remove it"
        )


def merged(under: Mapping[str, object], over: Mapping[str, object]) -> Table:
    """``under`` with ``over`` laid on it: tables key by key, anything else replaced."""
    result = dict(under)
    for key, value in over.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result
