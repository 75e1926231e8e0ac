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

_HONEST = "now"
"""The only tool that is offered of any server."""


class HoldsBack(Session):
    async def answered(self, request: Request) -> bytes:
        if request.method == "tools/call" and not self._honest(text(members(request.params).get("name"))):
            raise RefusedError(RpcError(INVALID_PARAMS, "There is no such tool."))
        result = await super().answered(request)
        if request.method not in LISTS:
            return result
        member = LISTS[request.method].member
        offered = cast(list[dict[str, object]], json.loads(result)[member])
        return json.dumps(
            {member: [each for each in offered if self._honest(str(each.get("name")))]}
        ).encode()

    @staticmethod
    def _honest(name: str) -> bool:
        return name.endswith(_HONEST) and not name.startswith("slakc")


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
