"""The budget for hostile input: how much of anything that comes from outside is taken in.

The rule: a limit on what a server, a client or a file may have us hold or compute stands here and nowhere
else. A row says what is counted, in which unit, and what happens at the limit. ``docs/security.md`` has the
same table for people; a test holds the two together.

Sizes are in bytes, times in seconds, unless a row says otherwise.
"""

KiB, MiB = 1 << 10, 1 << 20

# --- a message ----------------------------------------------------------------------------------------------

MESSAGE = 64 * MiB
"""One message, from a server or a client: a line, an HTTP body after decompression, the data of an SSE event.
A longer one is dropped while it arrives, and the request that it answers fails with a sentence that says so.
"""
DROPPED = 256 * MiB
"""What a stdio server writes of a line that is too long, before it ends the line. More, and the server is
ended."""
MEMBERS = 1_024
"""Members of one object that we look into or change: a message, its params or result, an offer, ``_meta``.
One with more is no object to us: it passes as it is, or what can't be done without it fails and says so. What
tools and their callers say to each other (arguments, content) isn't looked into and may have any number."""
ECHO = 200
"""Characters of any text from outside that a sentence of ours repeats. The rest is cut with ``…``."""

# --- what a person is shown ---------------------------------------------------------------------------------

SHOWN_TEXT = 1_000_000
"""Characters of one text (a description, a result) that a terminal is given. The rest is counted."""
SHOWN_LINE = 10_000
"""Characters of one line of it. The rest is counted."""
SHOWN_WORDS = 2_000
"""Characters of a name, a reason or a warning in a sentence or a table. The rest is cut with ``…``."""
SHOWN_MARKS = 8
"""Combining marks on one character. The rest are left out."""

# --- a list and what stands in it ---------------------------------------------------------------------------

LIST_PAGES = 1_000
"""Pages of one list of one server (its tools, prompts, resources or templates). More is a failed listing."""
LIST_ITEMS = 50_000
"""Items of one such list, over all pages. More is a failed listing: the last good one is kept."""
LIST_BYTES = 12 * MiB
"""Bytes of all tools of one server, over all pages; and of its prompts, resources and templates together.
More is a failed listing: the last good one is kept."""
ITEM = 1 * MiB
"""One tool, prompt, resource or template. A larger one is left out, and the server has a warning."""
NAME = 1_024
"""Characters of the name of a tool or a prompt. One with a longer name is left out, and the server has a
warning; a request for a longer name is refused before anything is compared."""
URI = 8_192
"""Characters of a resource's URI or a template. As for `NAME`."""
ASKED_NAME = 2 * NAME
"""Characters of the name in a request, which says the server too. A longer one names nothing: it is compared
with nothing, and no server is asked."""
ASKED_URI = URI + NAME
"""The same of a URI, or a template, in a request."""
TEMPLATE_WORK = 300_000
"""Characters of a URI times expressions of the templates that it may have come from, of all servers. Of
more it isn't said whose it is."""
UNKNOWN_WORDS = 12
"""Words of one search that no tool has and that are compared with all that tools have."""
NAME_LIKE = 256
"""Characters of a name, or a URI, that is looked for by others like it. A longer one has to be spelt as it
is, and is never among the nearest."""
NAME_COMPARED = 128
"""Characters of a name, less separators, that are compared in search of the names nearest to one that is not
there. In a longer name no slip of a letter is mended."""
LOOKED_UP = 1_000
"""Prompts, resources and templates, or tools that are shown by name, of all servers, among which one is
looked up between two other things. Among more it is in a thread of its own."""
READ_AT_ONCE = 64 * 1024
"""Bytes of a tool, or of arguments, that are read between two other things. What is longer is read in a
thread of its own, while others are served."""
MENDED = 256 * KiB
"""Bytes of a call's arguments in which the spelling of keys is mended, and of a tool whose spelling they are
given. What is longer passes as it is."""

VERSIONS = 64
"""Protocol versions that a server says it speaks. With more it can't be talked to."""
CURSOR = 16_384
"""Characters of the cursor to the next page of a list. A longer one is a failed listing."""
INSTRUCTIONS = 65_536
"""Characters of a server's instructions. The rest is cut with ``…``, and the server has a warning."""
SELF = 1 * MiB
"""What a server says of itself: its capabilities, its ``serverInfo``, each. A larger one is left out, and the
server has a warning."""
REASON = 4_096
"""Characters of the reason why a server can't be listed. The rest is cut with ``…``."""
WARNINGS = 8
"""Sentences about what is wrong with one server's lists. Of the others there is a number."""

# --- a schema -----------------------------------------------------------------------------------------------

SCHEMA_WORK = 20_000
"""Steps to read one schema: a subschema, a property, an enum value, a reference, 64 characters of a pointer,
an entry that is looked at in search of an anchor are one each. What would take more than are left is
``any``."""
SCHEMA_DEPTH = 24
"""Schemas in one another. What is deeper is ``any``."""
SIGNATURE = 10_000
"""Characters of the required parameters in a tool's line. Those beyond are counted, not shown."""

# --- an HTTP answer -----------------------------------------------------------------------------------------

REFUSAL = 64 * 1024
"""What is read of an HTTP answer that is no message: of a refusal (4xx, 5xx), a redirect, an answer to a
notification or to a good-bye. The rest is not read, and its connection is closed."""
REFUSAL_TIME = 2.0
"""Seconds that such a body has to come in. What has come by then is all that is said of it."""
HEADERS = 500
"""Header fields of an HTTP answer; h11 takes no more than about 100 KiB of them. More fail the request."""
HEAD = 256 * KiB
"""What may come of an HTTP answer before it begins: interim answers (1xx) and its head. More fail the
request."""
COOKIES = 8 * 1024
"""Bytes of cookies that a server over HTTP has us send. Beyond it no more of its cookies are taken."""
RETRY_SHORTEST = 0.1
"""Seconds that we wait at least before an event stream is opened again, whatever it says."""
RETRY_LONGEST = 3_600.0
"""Seconds that we wait at most before an event stream is opened again, whatever it says."""
EVENT_FIELD = 1_024
"""Bytes of a line of an event that is no data: an id comes back in a header. A longer one is as if it were
not there."""
RESOLVE_TIME = 5.0
"""Seconds that looking up the name of an authorization server may take."""
SCOPES_TRIED = 64
"""Scopes that a server says a call lacked and a machine has tried to have granted. Any others it doesn't."""
AUTH_ANSWER = 1 * MiB
"""An answer of an authorization server. A longer one ends the sign-in with a sentence that says so."""

# --- a wait queue, a session --------------------------------------------------------------------------------

NAMED_URIS = 16_384
"""URIs that results of one server named, remembered for one client (16 bytes each). After more, and of a
longer result, that server may have named any URI: one that others named too is refused as ambiguous."""
NAMED_BLOCKS = 4_096
"""Blocks of content of such a result, or resources in an answer to ``resources/read``. Of a result with more
it isn't known what it named; an answer with more can't be read by a URI that says the server."""
NAMED_IN = 4 * MiB
"""A result that is looked through for URIs. As for `NAMED_URIS`."""
WAITING = 16 * MiB
"""What waits for one stream that isn't read: a client on stdio, an event stream, the stdin of a server. Past
it progress, logs and the like are dropped; a client on stdio isn't read until it reads its answers, which are
never dropped; a server gets no more requests (they fail, and say why) and no answers to its pings."""
WAITING_SMALL = 64 * KiB
"""What of that may wait for each stream over HTTP, however much waits for all of them."""
WAITING_FOR_ALL = 64 * MiB
"""What waits for all streams over HTTP together, beyond `WAITING_SMALL` each. Past it progress, logs and the
like are dropped."""
REPLAYED = 4 * MiB
"""What was said on the streams of one session over HTTP and is kept, with 256 bytes an event, for a client
whose connection breaks. Past it the stream goes first on which nothing was said for longest; a longer answer
is not kept. Whoever asks for what is gone is told so."""
REPLAYED_FOR_ALL = 64 * MiB
"""The same of all sessions together."""
UNREAD = 128 * MiB
"""What was sent on HTTP connections, or is ready to be, whose clients leave more than 64 KiB unread. For more
that connection is closed on which nothing was read of most for longest, by bytes times seconds."""
TURN = 64
"""Lines of one client or server that are acted on before everybody else has a turn."""
FRONT = 4 * MiB
"""What a client on stdio says while the rest of mcpzip is being loaded. Past it, it isn't read until then."""
ID = 8_192
"""Bytes of the id of a request, or of a progress token. A longer id is refused; for a longer token there is
no progress."""
BATCH = 100
"""Messages of one JSON-RPC batch, which clients of 2025-03-26 may send. One with more is refused."""
CALLS = 4_000
"""Requests of clients under way at once: of a client on stdio, of all clients over HTTP. More are refused."""
COMPUTING = 2
"""Threads that search, describe and look up for clients. The others wait their turn, client by client."""
COMPUTATIONS = 256
"""Searches, descriptions and look-ups that wait for such a thread. For one more the last of the client goes
that has most waiting: it fails, and says so."""
NOTICES = 1_000
"""Notifications of clients that are being handed on at once. More are dropped."""
ASKED = 100
"""Requests of one server (sampling, elicitation, roots, ping) under way at once, or whose answer it has not
taken. More are refused. Over HTTP, while it takes none of as many answers, it is told nothing and not heard.
"""
SUBSCRIPTIONS = 1_000
"""Resources that one client may be subscribed to, or one ``subscriptions/listen`` name. More are refused."""
SESSIONS = 1_000
"""Legacy sessions over HTTP. For one more the session goes that was unused longest, those first that did
nothing but begin; if all are in use, the new one is refused."""
SESSIONS_SHARE = 500
"""Those of one address that isn't loopback: past it, one of its own makes room."""
PARKED = 1_000
"""Calls that wait for a modern client to come back with answers. For one more the oldest is given up."""
PARKED_CLIENT = 100
"""Those of one client that can be told from others, as on stdio."""
OWN_CONNECTIONS = 256
"""Connections (processes, on stdio) that clients have to themselves, besides one a server. For one more that
is closed which was unused longest; if all are in use, the call fails and says why."""

# --- a file -------------------------------------------------------------------------------------------------

CONFIG = 16 * MiB
"""The config. A larger one is an error: it is some other file."""
CLIENT_CONFIG = 16 * MiB
"""A client's config file, which `mcpzip migrate` reads. A larger one is left as it is, and named."""
CARD = 4 * MiB
"""What the front desk answers with. A larger one is not kept, and one that is found is not used: the whole
program answers."""
SNAPSHOT = 512 * MiB
"""The catalog on disk. A larger one is not used; none is written: the largest servers are left out first."""
SNAPSHOT_SERVER = 64 * MiB
"""What the snapshot holds of one server. One with more is kept as one never listed, with a warning."""
INDEX = 1_024 * MiB
"""The search index on disk. A larger one is not used: it is made anew."""
VECTORS = 1_024 * MiB
"""The vectors of an embedding server or a transformer. A larger file is not used: they are made anew."""
ANSWERS = 8 * MiB
"""The kept answers of the LLM tier. A larger file is not used."""
USAGE = 4 * MiB
"""Which tools were used. A larger file is left alone, with a warning, and nothing is learnt."""
SIGN_IN = 4 * MiB
"""The sign-in to one server. A larger one is neither kept nor used: the server needs a login."""
MCP_REMOTE = 1 * MiB
"""A file of mcp-remote's that sign-ins are taken over from. A larger one is passed over."""

# --- servers that are started -------------------------------------------------------------------------------

STARTS_AT_LEAST = 2
"""Processes of servers that start at the same time, or as many as there are processors if those are more; as
many again of servers that a call or a search names. The others wait their turn."""
START_HELD = 5.0
"""Seconds for which a server that starts keeps its place. If it hasn't answered by then, or if it only waits
for something, it is the next one's turn; its own 30 s to connect go on."""
INDEXED_AT_ONCE = 500
"""Tools that are taken into the search index before those that are in it can be searched, or a quarter as
many as are in it, if that is more. The rest follows, servers with few first."""
INDEXED_WORDS = 60_000
"""Words of the tools of one server in the search index, each counted once a tool, those of the table of word
vectors not at all. Of the tools beyond, in the order of their names, only the names are searched, and the
server has a warning."""
SERVERS_NAMED = 6
"""Servers that are still starting, or not indexed yet, that the answer to a search names; the others are
counted."""
