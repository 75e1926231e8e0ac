"""The limits on input of servers, clients and files.

Each docstring says what is counted, in which unit, and what happens at the limit. The table in
``docs/security.md`` has the same constants; a test compares the two.

Sizes are in bytes, times in seconds, unless a docstring says otherwise.
"""

KiB, MiB = 1 << 10, 1 << 20

# --- a message ----------------------------------------------------------------------------------------------

MESSAGE = 64 * MiB
"""One message of a server or client: a line, an HTTP body after decompression, or the data of an SSE event. A
longer one is dropped while it arrives, and the request that it answers fails with an error."""
DROPPED = 256 * MiB
"""Bytes of one too long line of a stdio server. If it goes on, the server is ended."""
MEMBERS = 1_024
"""Members of a JSON object that mcpzip reads or changes: a message, its params or result, a listed item,
``_meta``. An object with more passes unchanged, or fails with an error if that is impossible. The arguments
and content of calls are not read and may have any number."""
ECHO = 200
"""Characters of a text of a server, client or file that one of our sentences quotes. The rest is cut with
``…``."""

# --- what the user is shown ---------------------------------------------------------------------------------

SHOWN_TEXT = 1_000_000
"""Characters of one text (a description, a result) that a terminal shows. Of the rest the number is shown."""
SHOWN_LINE = 10_000
"""Characters of one line of such a text. Of the rest the number is shown."""
SHOWN_WORDS = 2_000
"""Characters of a name, a reason or a warning in a sentence or a table. The rest is cut with ``…``."""
SHOWN_MARKS = 8
"""Combining marks on one character. The rest are left out."""

# --- lists and their items ----------------------------------------------------------------------------------

LIST_PAGES = 1_000
"""Pages of one list of one server (tools, prompts, resources or templates). With more, listing fails and the
last good list is kept."""
LIST_ITEMS = 50_000
"""Items of one such list, over all pages. With more, listing fails and the last good list is kept."""
LIST_BYTES = 12 * MiB
"""Bytes of all tools of one server, over all pages; and of its prompts, resources and templates together.
With more, listing fails and the last good list is kept."""
ITEM = 1 * MiB
"""One tool, prompt, resource or template. A larger one is left out, with a warning."""
NAME = 1_024
"""Characters of the name of a tool or prompt. An item with a longer name is left out, with a warning; a
request with a longer name is refused before it is compared with any."""
URI = 8_192
"""Characters of a resource's URI or a URI template. As for `NAME`."""
ASKED_NAME = 2 * NAME
"""Characters of the name in a request, with its server. A longer name is refused without a search for it."""
ASKED_URI = URI + NAME
"""The same for a URI or URI template in a request."""
TEMPLATE_WORK = 300_000
"""Characters of a URI times the expressions in the templates of all servers. With more, templates are not
used to find the URI's server."""
UNKNOWN_WORDS = 12
"""Words of one search that no tool contains and that are compared with all words of the tools. The rest are
not compared."""
NAME_LIKE = 256
"""Characters of an unknown name or URI for which similar names are searched. A longer one needs its exact
spelling, and is never among the nearest."""
NAME_COMPARED = 128
"""Characters of a name, without separators, that are compared to find the nearest names. Typing errors in a
longer name are not corrected."""
LOOKED_UP = 1_000
"""Prompts, resources, templates or directly shown tools of all servers that are searched on the event loop.
With more, the search runs in a thread."""
READ_AT_ONCE = 64 * 1024
"""Bytes of a tool or of arguments that are parsed on the event loop. Longer ones are parsed in a thread."""
REPAIRED = 256 * KiB
"""Bytes of a call's arguments, and of its tool, up to which misspelt argument names are corrected. Longer
arguments pass unchanged."""

VERSIONS = 64
"""Protocol versions that a server supports. A server with more can't be used, and an error says so."""
CURSOR = 16_384
"""Characters of the cursor to the next page of a list. With a longer one, listing fails."""
INSTRUCTIONS = 65_536
"""Characters of a server's instructions. The rest is cut with ``…``, with a warning."""
SELF = 1 * MiB
"""A server's capabilities, and its ``serverInfo``, each. A larger one is left out, with a warning."""
REASON = 4_096
"""Characters of the reason why listing a server failed. The rest is cut with ``…``."""
WARNINGS = 8
"""Warnings about one server's lists. Of the rest the number is shown."""
LOST_TOOLS = 1_000
"""Tools that servers have lost, which a process remembers so that their names don't come to mean another
server's tools. Of more, the oldest are forgotten."""

# --- the checks of what servers say -------------------------------------------------------------------------

CHECKED_TEXT = 131_072
"""Characters of one tool, prompt, resource or template, or of a server's instructions, that are checked for
hidden text and the like. A longer one is held, because the rest is not checked."""
CHECKED_ITEMS = 2_000
"""Items of one listing that are new or changed and that are checked before they are pinned. More changes of a
known server are held. At its first sight all items are searched, and these are those that look suspicious;
more of them are held."""
CHECK_FINDINGS = 20
"""Findings of each severity about one such item. The rest isn't shown."""
CHECKED_SAID = 32_768
"""Bytes of an error of a call, or of a question of a server during one, that are checked. The rest isn't."""
SAID_WAITING = 100
"""Such texts that wait for being checked. More aren't checked."""
SAID_NOTED = 100
"""Different findings in such texts that are noted of one server. More aren't noted."""

# --- a policy for calls -------------------------------------------------------------------------------------

ASKED_ARGUMENTS = 20_000
"""Bytes of the arguments of a call about which a person is asked, and characters in which they are shown. The
person isn't asked about longer ones: the call is refused, unless `mcpzip allow` allowed it."""
POLICY_GLOBS = 1_000
"""Globs in one ``policy.tools`` or ``risk`` of the config. With more, the config is refused."""

REFUSED_CALLS = 50
"""Calls that were refused because nobody could be asked, and that a person can still allow one by one. Of
more the oldest are forgotten."""

# --- a schema -----------------------------------------------------------------------------------------------

SCHEMA_WORK = 20_000
"""Steps to read one schema: a subschema, a property, an enum value, a reference, 64 characters of a pointer
and an entry that is searched for an anchor are one each. What would take more steps than are left is
``any``."""
SCHEMA_DEPTH = 24
"""Nesting depth of a schema. Deeper schemas are ``any``."""
SIGNATURE = 10_000
"""Characters of the required parameters in a tool's signature line. Of the rest the number is shown."""

# --- an HTTP answer -----------------------------------------------------------------------------------------

REFUSAL = 64 * 1024
"""Bytes of the body of an HTTP response that is no message: an error (4xx, 5xx), a redirect, the response to
a notification or to the end of a session. The rest is not read, and the connection is closed."""
REFUSAL_TIME = 2.0
"""Seconds to read such a body. After that, what was received counts as the body."""
HEADERS = 500
"""Header fields of an HTTP response (h11 accepts about 100 KiB of them). With more, the request fails."""
HEAD = 256 * KiB
"""Bytes before the body of an HTTP response: interim responses (1xx) and the head. With more, the request
fails."""
COOKIES = 8 * 1024
"""Bytes of cookies that we store for a server. The cookies of a response that would exceed it are ignored."""
RETRY_SHORTEST = 0.1
"""The minimum of seconds before an event stream is reopened. A shorter ``retry`` of the server is raised to
it."""
RETRY_LONGEST = 3_600.0
"""The maximum of seconds before an event stream is reopened. A longer ``retry`` of the server is cut to
it."""
EVENT_FIELD = 1_024
"""Bytes of the line of an event's id, type or retry time. A longer line is ignored. An id is sent back in a
header."""
RESOLVE_TIME = 5.0
"""Seconds to resolve the host name of an authorization server. After that, the sign-in fails with an
error."""
SCOPES_TRIED = 64
"""Scopes that a server reported as missing and that a machine sign-in has requested. Further scopes are not
requested."""
AUTH_ANSWER = 1 * MiB
"""A response of an authorization server. With a longer one, the sign-in fails with an error."""

# --- a wait queue, a session --------------------------------------------------------------------------------

NAMED_URIS = 16_384
"""URIs in the results of one server, remembered for one client (16 bytes each). After more, that server may
have named any URI: a URI that other servers named too is refused as ambiguous."""
NAMED_BLOCKS = 4_096
"""Content blocks of such a result, or ``contents`` of an answer to ``resources/read``. A result with more may
have named any URI, as for `NAMED_URIS`; a read by a URI with a server's name fails with an error."""
NAMED_IN = 4 * MiB
"""Bytes of a result that is searched for URIs. A longer result may have named any URI, as for
`NAMED_URIS`."""
WAITING = 16 * MiB
"""Bytes that wait for one stream that isn't read: a client on stdio, an event stream, the stdin of a server.
With more, progress, logs and the like are dropped; a client on stdio isn't read until it reads its responses,
which are never dropped; a server gets no more requests (they fail with an error) and no responses to
pings."""
WAITING_SMALL = 64 * KiB
"""The part of `WAITING` that each stream over HTTP has to itself, however much waits for all of them."""
WAITING_FOR_ALL = 64 * MiB
"""Bytes that wait for all streams over HTTP together, beyond `WAITING_SMALL` each. With more, progress, logs
and the like are dropped."""
REPLAYED = 4 * MiB
"""Bytes of the events of one HTTP session that are kept for a client that reconnects, plus 256 bytes per
event. With more, the stream that was idle longest is forgotten; a longer response is not kept. A client that
asks for forgotten events gets an error."""
REPLAYED_FOR_ALL = 64 * MiB
"""The same for all sessions together."""
UNREAD = 128 * MiB
"""Bytes sent, or ready to be sent, on HTTP connections whose clients leave more than 64 KiB unread. With
more, the connection with the highest product of unread bytes and seconds is closed."""
TURN = 64
"""Lines of one client or server that are processed before other tasks run."""
FRONT = 4 * MiB
"""Bytes that a client on stdio sends before mcpzip is loaded. With more, it isn't read until then."""
ID = 8_192
"""Bytes of the id of a request, or of a progress token. A longer id is refused; for a longer token there is
no progress."""
BATCH = 100
"""Messages of one JSON-RPC batch (clients of 2025-03-26). A larger batch is refused."""
CALLS = 4_000
"""Open requests of a client on stdio, or of all clients over HTTP. Further requests are refused."""
COMPUTING = 2
"""Threads that search, describe and look up for clients. Other computations wait; clients take turns."""
COMPUTATIONS = 256
"""Searches, descriptions and look-ups that wait for such a thread. With one more, the latest of the client
with the most fails with an error."""
NOTICES = 1_000
"""Notifications of clients that are being processed. Further ones are dropped."""
ASKED = 100
"""Open requests of one server (sampling, elicitation, roots, ping), with the responses that it has not read.
Further requests are refused. Over HTTP, while that many responses wait, requests of the server are
ignored."""
SUBSCRIPTIONS = 1_000
"""Resources that one client is subscribed to, or that one ``subscriptions/listen`` names. Further ones are
refused."""
SESSIONS = 1_000
"""Legacy sessions over HTTP. For a new one, the session that was idle longest is closed, first those that
only initialized; if all are in use, the new one is refused."""
SESSIONS_SHARE = 500
"""Sessions of one address that isn't loopback. For a new one, one of that address is closed."""
SESSIONS_ENDED = 10_000
"""Sessions that their clients ended, and whose sealed ids are remembered. The oldest is forgotten first."""
SEALED_INFO = 512
"""Bytes of what a client says of itself in a sealed session id. More is left out."""
SEALED_CAPABILITIES = 2 * KiB
"""Bytes of a client's capabilities in a sealed session id. More are left out."""
SEALED_SESSION = 8 * KiB
"""Characters of a sealed session id. A longer one is none."""
HANDLES_SEARCHED = 256 * KiB
"""Bytes of a request that are searched for handles of other replicas. Further ones are unknown."""
HANDLES_OPENED = 16
"""Handles of a request that are opened to find the replica that has what they name. More are not."""
STATE_PARAMS = 64 * KiB
"""Bytes of the params of a request up to which a sealed ``requestState`` is bound to all of them, else to
the names in them."""
FORWARDS = 2_000
"""Requests that one replica forwards to others at once. One more is refused."""
FORWARDS_REMEMBERED = 200_000
"""Forwarded requests of the last minute, of which none is taken twice. One more is refused."""
REPLICAS_AWAY = 256
"""Replicas that could not be reached lately, and aren't tried for some seconds. More are tried again."""
REPLICAS_ACKNOWLEDGING = 1_024
"""Replicas that have acknowledged a forwarded call. The one that did so longest ago is forgotten first."""
PARKED = 1_000
"""Calls that wait for a modern client to send its answers. For one more, the oldest is abandoned."""
PARKED_CLIENT = 100
"""The same for one client that can be identified, as on stdio."""
ROOTS = 64 * KiB
"""What a client says are its roots, for servers that ask for them. A client that says more shares no process
of these servers."""
OWN_CONNECTIONS = 256
"""Connections (on stdio: processes) that belong to one client, besides the shared one of each server. For one
more, the one that was idle longest is closed; if all are in use, the call fails with an error."""

DAEMON_CLIENTS = 1_000
"""Agents that the daemon serves at the same time. Further ones are served without it."""
GREETING = 4 * MiB
"""What a `mcpzip serve` says to the daemon before the messages of its client; settings that are told again
count extra. A longer greeting is refused, and its client is served without the daemon."""

# --- calls that are remembered ------------------------------------------------------------------------------

RECORDED_CALLS = 1_000
"""Calls that a process remembers, for each environment of its agents. Of more, the oldest are forgotten."""
RECORDED_EVENTS = 32
"""Events of one such call. Later ones are not noted."""
RECORDED_NAME = 200
"""Characters of the names of its server and its tool. The rest is left out."""
RECORDED_CALLERS = 64
"""Clients whose names are remembered for later calls. With more, they are read anew."""

# --- a file -------------------------------------------------------------------------------------------------

CASSETTE = 64 * MiB
"""A cassette, without the files beside it. A larger one isn't read."""
CONFIG = 16 * MiB
"""The config file. A larger one is refused with an error."""
CONFIG_VERSIONS = 20
"""Earlier versions of the config that are kept. Of more, the oldest are deleted."""
CONFIG_VERSIONS_BYTES = 32 * MiB
"""Bytes of these versions, all together. Of more, the oldest are deleted, but never the last one."""
CONFIG_PROBLEMS = 50
"""Warnings about the text of a config that the page shows. Of the rest the number is shown."""
CLIENT_CONFIG = 16 * MiB
"""A client's config file, which `mcpzip migrate` reads. A larger one is left as it is, with a message."""
HANDSHAKE = 4 * MiB
"""The stored results of the early handshake. Larger ones are neither written nor used; then the loaded
program answers."""
ABANDONED = 600.0
"""Seconds in which a server may still speak about a request that was cancelled or timed out. What names no
request is then not passed on to another client."""
SHARING = 1 * MiB
"""The stored list of servers that ask their clients something. A larger file is not used."""
UNANSWERED = 1 * MiB
"""The stored list of servers that never answered. A larger file is not used."""
RUN = 1 * MiB
"""The file by which `mcpzip status` finds a process. A larger one is ignored."""
TRUST = 1 * MiB
"""The stored list of trusted projects. A larger file is refused."""
PINS = 256 * MiB
"""The file of pins. One that would be larger is not written, so that what would be pinned is held; a larger
one is not used."""
PIN_TEXTS = 64 * MiB
"""The stored texts of one server's pinned and held items, with earlier ones as long as there is room. Of what
has no room no difference can be shown."""
SHARED_PINS = 8 * MiB
"""The pins of one server in a store that processes share, before they are compressed. Larger ones are not
written, so that what would be pinned is held; larger ones are not used."""
SHARED_PIN_TEXTS = 8 * MiB
"""The texts of one server's pinned and held items in such a store, before they are compressed, with earlier
ones as long as there is room. Of what has no room no difference can be shown."""
PIN_COUNTER = 4_096
"""The file with the last counter of the pins. A larger file is not used."""
REFUSED = 8 * 1024 * 1024
"""Bytes of the list of calls that were refused lately. A larger one is not used."""
ALLOWED = 1 * MiB
"""The stored list of allowed calls. A larger file allows nothing, and an error says to delete it."""
ALLOWED_CALLS = 1_000
"""Entries of that list. With more, the oldest is removed."""
SNAPSHOT = 512 * MiB
"""The catalog on disk. A larger file is not used; the largest servers are left out so that none is
written."""
SNAPSHOT_SERVER = 64 * MiB
"""The part of the snapshot for one server. A larger server is stored as if it was never listed, with a
warning."""
INDEX = 1_024 * MiB
"""The search index on disk. A larger file is not used: the index is built again."""
VECTORS = 1_024 * MiB
"""The vectors of an embedding server or a transformer. A larger file is not used: they are computed again."""
ANSWERS = 8 * MiB
"""The stored answers of the LLM tier. A larger file is not used."""
USAGE = 4 * MiB
"""The record of which tools were used. A larger file is neither used nor changed, with a warning."""
LEARNED_WORD = 24
"""Letters of a word in it. A longer one is not learned."""
LEARNED_WORDS = 24
"""Words of a tool in it. With more, those that led to it least are dropped."""
LEARNED_TOOLS = 500
"""Tools in it that have words. With more, those that were used least lose theirs."""
SIGN_IN = 4 * MiB
"""The sign-in to one server. A larger one is neither stored nor used: the server needs a login."""
MCP_REMOTE = 1 * MiB
"""A file of mcp-remote from which sign-ins are imported. A larger one is ignored."""

# --- a store that processes share ---------------------------------------------------------------------------

STORE_TIME = 5.0
"""Seconds for one operation of the store. After that it fails with an error, whatever the store does."""
STORE_NAME = 200
"""Characters of a name in the store: letters, digits, ``_``, ``.``, ``:`` and ``-``. Another one is an
error."""
STORE_VALUE = 2 * MiB
"""One value in the store. A larger one isn't stored, with an error."""
STORE_VALUES = 10_000
"""Values of one kind in the store, such as sign-ins. Another one isn't stored, with an error."""
STORE_ENTRY = 64 * KiB
"""One entry of a log in the store. A larger one isn't stored, with an error."""
STORE_ENTRIES = 10_000
"""Entries of one log in the store. Of more, the oldest are deleted."""
STORE_MESSAGE = 4 * KiB
"""One message to the other processes. A larger one isn't sent, with an error."""
STORE_UNREAD = 1_000
"""Messages of other processes that wait for being read. Further ones are dropped."""
STORE_LEASE = 600.0
"""Seconds until a lease ends that isn't renewed. A longer one is an error."""
STORE_BUCKETS = 1_000
"""Token buckets from which one operation of the store takes. With more it is an error."""
STORE_LISTING = 1.0
"""Seconds for one operation about what a server listed. After that the server is asked instead."""
STORE_COUNTING = 0.25
"""Seconds for which a call waits until the store has counted it. After that it goes on as ``if_store_fails``
says."""
SEEN = 4 * MiB
"""The list of what this machine has seen last in the store. A larger file is not used: an earlier value
that somebody puts back is not recognized then."""

# --- results that are kept ---------------------------------------------------------------------------------

KEPT = 256 * MiB
"""Kept results of one client. A larger result is sent whole; for another one those that were used longest ago
are forgotten."""
KEPT_OF_ALL = 512 * MiB
"""Kept results of all clients. Those that were used longest ago are forgotten."""
KEPT_NUMBER = 256
"""Kept results of one client. That which was used longest ago is forgotten."""
KEPT_SECONDS = 1_800
"""Seconds after its last use for which a result is kept."""
KEPT_IN_MEMORY = 8 * MiB
"""A kept result in memory. A larger one is in an unnamed temporary file."""
KEPT_PIECES = 500_000
"""Lines, elements or members that one reading of a kept result looks at. With more it asks for a path."""

# --- people who call over HTTP ------------------------------------------------------------------------------

BEARER_TOKEN = 16 * 1024
"""Characters of a token. A longer one is refused."""
SUBJECT = 1_000
"""Characters of what an issuer calls somebody (``sub``). A token with a longer one is refused."""
PERSON_NAME = 200
"""Characters of somebody's name. The rest is left out."""
GROUPS = 1_000
"""Groups of somebody, and scopes of a token. A token with more is refused."""
GROUP = 1_000
"""Characters of a group or a scope. A token with a longer one is refused."""
ISSUERS = 20
"""Issuers in the config. With more, it is refused."""
KEYS = 200
"""Keys of one issuer. A set of more is not used; nor is one above `AUTH_ANSWER`."""
KEY_MEMBER = 4_096
"""Characters of a member of such a key. A key with a longer one is left out."""
INTROSPECTED = 10_000
"""Answers of issuers about opaque tokens that are remembered. The oldest is forgotten."""
AUTHENTICATIONS = 64
"""Tokens about which an issuer is being asked. Requests with further ones are refused with 503."""
API_KEYS = 4 * MiB
"""The file of API keys. With a larger one no key is valid."""
API_KEYS_NUMBER = 5_000
"""Keys in it. Another one is not added."""
ACCESS_RULES = 1_000
"""Rules in the ``access`` of the config. With more, it is refused."""
VIEWS = 64
"""Different views of the catalog that are kept, one for all people who may use the same; with
``auth.per_user`` one for each person. That which was used longest ago is made anew when it is needed."""
RATE_BUCKETS = 20_000
"""People, times the limits of the config, whose calls are counted. Those who called longest ago begin
anew."""
PEOPLE_CONNECTED = 256
"""People whose connections to servers with ``auth.per_user``, and lists of those, are kept. Those of who
asked longest ago are closed and forgotten; their next request begins anew.
"""
PERSON_CONNECTIONS = 16
"""Connections of one person to such servers that belong to one of their clients. See OWN_CONNECTIONS."""
PEOPLE_NAMED = 1_000
"""People of whom is kept which server's results named which URI. Those longest ago are forgotten."""

# --- programs -----------------------------------------------------------------------------------------------

PROGRAM = 32 * 1024
"""Bytes of a program that a model writes. A longer one is refused."""
PROGRAM_SECONDS = 5.0
"""Seconds that a program computes, without those in which it waits for tools. It is ended then."""
PROGRAM_MEMORY = 64 * MiB
"""Memory of a program. It is ended when it needs more."""
PROGRAM_VALUE = 8 * MiB
"""Bytes of a tool's result that a program gets, of the arguments that it gives a tool, and of what it ends
with. A larger result is kept, and an error in the program; the rest are errors too."""
PROGRAM_CALLS = 100
"""Calls of tools that one program makes. A further call fails in the program."""
PROGRAM_CALLS_AT_ONCE = 8
"""Calls of one program at the same time. Further ones wait."""
PROGRAM_PRINTED = 64 * 1024
"""Characters that a program prints. The rest is left out."""
PROGRAM_STATE = 32 * MiB
"""The variables of one client's programs. Larger ones are forgotten, and the reply says so."""
PROGRAM_STATES = 256 * MiB
"""The variables of all clients. Those that were used longest ago are forgotten."""
PROGRAMS = 8
"""Programs that run at the same time, those that wait for a call included. Further ones wait."""
PROGRAMS_OF_CLIENT = 16
"""Paused programs of one client. That which was paused longest ago is ended."""
PROGRAMS_OF_CLIENT_SIZE = 128 * MiB
"""The paused programs of one client, with the results that they wait with. Those that were paused longest ago
are ended."""
PROGRAMS_PAUSED = 256
"""Paused programs of all clients. That which was paused longest ago is ended."""
PROGRAMS_PAUSED_SIZE = 256 * MiB
"""The paused programs of all clients. Those that were paused longest ago are ended."""

# --- servers that are started -------------------------------------------------------------------------------

STARTS_AT_LEAST = 2
"""Server processes that start at the same time; the number of processors if that is higher. As many again may
start for a call or a search. The rest wait."""
START_HELD = 5.0
"""Seconds for which a starting server keeps its place. If it hasn't answered by then, or is idle, the next
server starts; its own 30 s to connect continue."""
INDEXED_AT_ONCE = 1_000
"""Tools that are added to the search index in one step, or a quarter of those in it if that is more. After
each step the index can be searched; servers with few tools come first."""
INDEXED_WORDS = 60_000
"""Words of one server's tools in the search index, each counted once per tool, without those in the table of
word vectors. Of the tools beyond, in the order of their names, only the names are indexed, with a warning."""
SERVERS_NAMED = 6
"""Servers that are starting or not indexed yet and that the answer to a search names. Of the rest the number
is shown."""
