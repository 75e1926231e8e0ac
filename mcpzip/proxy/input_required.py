"""Questions to a client as a modern result has them (`InputRequiredResult`; spec 2026-07-28:
basic/patterns/mrtr), and a legacy server's errors as a modern client knows them (basic/index, "Error codes").
"""

from collections.abc import Mapping

from mcpzip.model import limits
from mcpzip.model.errors import (
    UpstreamError,
)
from mcpzip.proxy.call import Call, ServerRequest
from mcpzip.proxy.client_capabilities import (
    URL_ELICITATION,
    has_capability,
    missing_capability,
    required_capability,
)
from mcpzip.proxy.exchange import members
from mcpzip.wire import (
    INVALID_PARAMS,
    RESOURCE_NOT_FOUND,
    URL_ELICITATION_REQUIRED,
    JsonRpcError,
    NotAnObject,
    RpcError,
    join_object,
    quote,
    split_object,
    unquote,
)
from mcpzip.wire.json_iter import elements_of


def is_input_required(result: bytes) -> bool:
    """Whether ``result`` is a question to the client."""
    if b'"input_required"' not in result:  # a result may be long, and is seldom one
        return False
    return members(result).get("resultType") == b'"input_required"'


def input_required(questions: Mapping[str, ServerRequest], state: str) -> bytes:
    """The result that asks a client these ``questions``, to come back with ``state``."""
    requests = {
        key: join_object(
            {"method": quote(one.method)} | ({} if one.params is None else {"params": one.params})
        )
        for key, one in questions.items()
    }
    return _result({"inputRequests": join_object(requests), "requestState": quote(state)})


def input_requests(call: Call, raw: bytes) -> dict[str, tuple[str, bytes | None]]:
    """Method and params of each question in the `inputRequests` of a server, by its key. Raises JsonRpcError
    for one that the client of ``call`` cannot be asked, UpstreamError for what is none, or for too many.
    """
    server = call.request.server
    try:
        found = split_object(raw)
    except NotAnObject as error:
        if not raw.startswith(b"{"):
            return {}
        raise UpstreamError(server, f"it asked for input in a way that can't be read: {error}") from None
    if len(found) > limits.ASKED:
        raise UpstreamError(server, f"it asked for more than {limits.ASKED} things at once")
    return {key: _input_request(call, question) for key, question in found.items()}


def _input_request(call: Call, raw: bytes) -> tuple[str, bytes | None]:
    question = members(raw)
    try:
        method, params = unquote(question.get("method", b"")), question.get("params")
    except ValueError:
        raise UpstreamError(call.request.server, "it asked for input in a way that makes no sense") from None
    capability = required_capability(method, params)
    if capability is not None and not has_capability(call.capabilities, capability[:1]):
        raise JsonRpcError(missing_capability(capability))
    return method, params


def for_modern_client(error: RpcError, call: Call) -> bytes | None:
    """The result with which a modern client is answered in place of a legacy server's ``error``; None where
    the error is to be passed on. Raises JsonRpcError where its era has another error for it.
    """
    if error.code == RESOURCE_NOT_FOUND and call.request.method == "resources/read":
        uri = call.request.fields.get("uri", b'""')
        data = join_object({"uri": uri} | members(error.data))
        raise JsonRpcError(RpcError(INVALID_PARAMS, error.message, data, error.more))
    if error.code != URL_ELICITATION_REQUIRED:
        return None
    if not has_capability(call.capabilities, URL_ELICITATION):
        raise JsonRpcError(missing_capability(URL_ELICITATION))
    try:
        elicitations = elements_of(members(error.data).get("elicitations", b"[]"), limits.ASKED)
    except ValueError:
        return None
    requests = {
        f"elicitation-{number}": join_object({"method": b'"elicitation/create"', "params": elicitation})
        for number, elicitation in enumerate(elicitations, 1)
    }
    return _result({"inputRequests": join_object(requests)}) if requests else None


def _result(fields: dict[str, bytes]) -> bytes:
    return join_object({"resultType": b'"input_required"', **fields})
