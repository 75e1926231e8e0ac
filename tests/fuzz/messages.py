"""What a fuzzer starts from: one real message of every kind MCP has, in both eras, and answers to our own.

The rule: these are all well-formed; `mutations` is what bends them.
"""

META = (
    '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":'
    '{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"sampling":{}},'
    '"io.modelcontextprotocol/logLevel":"info","progressToken":"p1"}'
)

# method: the members of its params
_LEGACY_REQUESTS = {
    "initialize": '"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true}},'
    '"clientInfo":{"name":"c","title":"C","version":"1.0"}',
    "ping": "",
    "tools/list": '"cursor":"page-2"',
    "tools/call": '"name":"pay","arguments":{"id":7,"amount":1.50,"to":["a",null,true]},'
    '"_meta":{"progressToken":1}',
    "resources/list": "",
    "resources/templates/list": "",
    "resources/read": '"uri":"file:///a%20b"',
    "resources/subscribe": '"uri":"file:///a"',
    "resources/unsubscribe": '"uri":"file:///a"',
    "prompts/list": "",
    "prompts/get": '"name":"greet","arguments":{"who":"Zoë 😀"}',
    "completion/complete": '"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":"Z"}',
    "logging/setLevel": '"level":"debug"',
    "sampling/createMessage": '"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],'
    '"maxTokens":100',
    "elicitation/create": '"mode":"form","message":"Who?","requestedSchema":{"type":"object"}',
    "roots/list": "",
    "tasks/get": '"taskId":"t-1"',
    "tasks/result": '"taskId":"t-1"',
    "tasks/cancel": '"taskId":"t-1"',
    "tasks/list": "",
}
_MODERN_REQUESTS = {
    "server/discover": "",
    "subscriptions/listen": '"notifications":{"toolsListChanged":true,"resourceSubscriptions":["file:///a"]}',
    "tools/list": "",
    "tools/call": '"name":"pay","arguments":{"id":7},"inputResponses":{"q":{"action":"accept","content":{}}},'
    '"requestState":"abc"',
    "resources/read": '"uri":"file:///a"',
    "prompts/get": '"name":"greet"',
    "completion/complete": '"ref":{"type":"ref/resource","uri":"a:{b}"},"argument":{"name":"b","value":""}',
}
_NOTIFICATIONS = {
    "notifications/initialized": "",
    "notifications/cancelled": '"requestId":1,"reason":"enough"',
    "notifications/progress": '"progressToken":1,"progress":0.5,"total":1.0,"message":"half"',
    "notifications/message": '"level":"info","logger":"l","data":{"a":1e400}',
    "notifications/tools/list_changed": "",
    "notifications/resources/list_changed": "",
    "notifications/resources/updated": '"uri":"file:///a"',
    "notifications/prompts/list_changed": "",
    "notifications/roots/list_changed": "",
    "notifications/elicitation/complete": '"elicitationId":"e1"',
    "notifications/subscriptions/acknowledged": '"notifications":{"toolsListChanged":true}',
    "notifications/tasks/status": '"taskId":"t-1","status":"working"',
}
_OUTCOMES = (
    '"result":{}',
    '"result":{"content":[{"type":"text","text":"paid \\ud83d\\ude00"},{"type":"image","data":"AA==",'
    '"mimeType":"image/png"},{"type":"resource_link","uri":"a:b","name":"n"}],"isError":false}',
    '"result":{"tools":[{"name":"pay","inputSchema":{"type":"object"}}],"nextCursor":"page-2"}',
    '"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}',
    '"result":{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{}}},'
    '"requestState":"abc","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}',
    '"result":{"resultType":"complete","ttlMs":5,"cacheScope":"private","structuredContent":[1,-0,1.0,1E+2]}',
    '"error":{"code":-32601,"message":"Method not found","data":{"method":"x"}}',
    '"error":{"code":-32022,"message":"Unsupported","data":{"supported":["2026-07-28"],"requested":"x"}}',
    '"error":{"code":-32000,"message":"no"}',
)


def _call(id: str, method: str, params: str) -> str:
    named = f'"id":{id},' if id else ""
    return f'{{"jsonrpc":"2.0",{named}"method":"{method}","params":{{{params}}}}}'


def _modern(params: str) -> str:
    return f"{params},{META}" if params else META


MESSAGES: tuple[str, ...] = (
    *(_call("7", method, params) for method, params in _LEGACY_REQUESTS.items()),
    *(_call('"a-1"', method, _modern(params)) for method, params in _MODERN_REQUESTS.items()),
    *(_call("", method, params) for method, params in _NOTIFICATIONS.items()),
    *(f'{{"jsonrpc":"2.0","id":{id},{outcome}}}' for id in "123" for outcome in _OUTCOMES),
    *(f'{{{outcome},"id":{id},"jsonrpc":"2.0"}}' for id in "12" for outcome in _OUTCOMES[1:2]),
)
"""JSON texts, each one line."""
