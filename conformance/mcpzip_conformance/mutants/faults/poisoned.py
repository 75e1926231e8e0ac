"""Faults of a gate for poisoned servers: it holds back what is honest, or lets the model approve."""

import json
from typing import cast

from mcpzip.wire import INVALID_PARAMS, Request, RpcError
from mcpzip_conformance.mutants.faults.fault import Fault
from mcpzip_conformance.mutants.relay.end import RefusedError
from mcpzip_conformance.mutants.relay.listing import LISTS
from mcpzip_conformance.mutants.relay.naming import members, text
from mcpzip_conformance.mutants.relay.relay import Parts
from mcpzip_conformance.mutants.relay.session import Session

_HONEST = ("now", "weigh_parcel", "letter", "postage")
"""The only tools, prompts and resources that are offered of any server, beside those of `_HINTED`."""
_HINTED = ("sync", "drop")
"""Tools that are offered with the hints that they had at first."""
_CALLED = "add"
"""A tool that is called although it isn't offered. If it fails, the text of its error is not passed on."""


class HoldsBack(Session):
    async def answered(self, request: Request) -> bytes:
        if request.method == "tools/call":
            name = text(members(request.params).get("name"))
            if not (self._honest(name) or name.endswith(_CALLED)):
                raise RefusedError(RpcError(INVALID_PARAMS, "There is no such tool."))
        result = await super().answered(request)
        if request.method == "tools/call" and json.loads(result).get("isError"):
            return json.dumps({"content": [{"type": "text", "text": "It failed."}], "isError": True}).encode()
        if request.method not in LISTS:
            return result
        member = LISTS[request.method].member
        offered = cast(list[dict[str, object]], json.loads(result)[member])
        kept = [each for each in offered if self._honest(str(each.get("name")))]
        for each in kept:
            if str(each["name"]).endswith(_HINTED):
                each["annotations"] = {"readOnlyHint": False, "destructiveHint": True}
        return json.dumps({member: kept}).encode()

    @staticmethod
    def _honest(name: str) -> bool:
        return name.endswith(_HONEST + _HINTED) and not name.startswith("slakc")


class OffersApproval(Session):
    async def answered(self, request: Request) -> bytes:
        result = await super().answered(request)
        if request.method != "tools/list":
            return result
        approve = {"name": "approve_tool", "inputSchema": {"type": "object"}}
        return json.dumps({"tools": [*json.loads(result)["tools"], approve]}).encode()


FAULTS = {
    "holds-back-all": Fault(
        "offers only tools that are known to be honest",
        "poisoning.quotes-an-attack",
        Parts(names=HoldsBack),
    ),
    "offers-approval": Fault(
        "offers a tool that approves others", "poisoning.approval-tools", Parts(names=OffersApproval)
    ),
}
