"""The subject file of a proxy that drops ``isError``, for tests of what is said of a wrong proxy."""

import json
import re

from mcpzip_conformance.mutants.faults import FAULTS
from mcpzip_conformance.mutants.hunt import HERE, mutant

FAULT = "drops-is-error"


def wrong_proxy(title: str) -> str:
    """The file's text."""
    text = (HERE / f"{FAULTS[FAULT].mode}.toml").read_text(encoding="utf-8")
    text = re.sub("(?m)^title = .*$", lambda _: f"title = {json.dumps(title)}", text)
    command = json.dumps(mutant(FAULT).start.command)
    return re.sub("(?m)^command = .*$", lambda _: f"command = {command}", text)
