"""The JSON Schema of the config file, for editors (JSON Schema draft 2020-12; pure).

The rules:

1. Names, choices, limits and defaults are those of the modules that read the file. A test compares the keys.
2. Whatever the reader accepts without a warning is valid. Not everything that is valid is accepted: some keys
   exclude each other, and the form of a URL is the reader's business.
3. A string with a variable in it is valid wherever a string is.
"""

from typing import get_args

from mcpzip.config import (
    auth,
    code,
    http_forms,
    policy_forms,
    reading,
    results,
    search,
    server,
    telemetry_forms,
)
from mcpzip.config.schema import (
    CALL_TIMEOUT,
    DAEMON_IDLE,
    DECISIONS,
    DEFAULT_LIMIT,
    EMBEDDING_DEADLINE,
    GEMINI_MODEL,
    IDLE_TIMEOUT,
    LLM_DEADLINE,
    LONGEST,
    MAX_LIMIT,
    MAX_TOKENS,
    RESULT_TOKENS,
    Provider,
)
from mcpzip.config.schema_forms import (
    VARIABLE,
    Schema,
    boolean,
    choice,
    decisions,
    inherit_env,
    integer,
    nullable,
    number,
    object_of,
    text,
    text_members,
    texts,
    words,
)
from mcpzip.model.risk import RISK_CLASSES

_SHOWN = (
    "What a client is shown: three tools that find and run all others; every tool of every server; or the "
    "one server unchanged."
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def config_schema() -> Schema:
    """The schema of a whole config file."""
    found = object_of(
        "A config of mcpzip. Strings may contain ${VARIABLES} of the environment.",
        {
            "$schema": {"type": "string"},
            "mcpServers": nullable(
                {
                    "type": "object",
                    "description": "The servers, by names of your choice, which become the first part of the "
                    "names of their tools: letters, digits, '-', '.' and single '_'.",
                    "additionalProperties": {"anyOf": [{"$ref": "#/$defs/server"}, {"type": "null"}]},
                }
            ),
            "search": {"anyOf": [{"$ref": "#/$defs/search"}, {"type": "null"}]},
            "idle_timeout_minutes": number(
                "Minutes without a call after which a connection is closed (fractions too).",
                IDLE_TIMEOUT / 60,
                above=0,
                most=LONGEST / 60,
            ),
            "call_timeout_seconds": number(
                "Seconds a call may take, unless the call or its server has another timeout.",
                CALL_TIMEOUT,
                above=0,
                most=LONGEST,
            ),
            "gemini_api_key": text(
                "The key of the LLM tier of the search. The environment variable GEMINI_API_KEY overrides it."
            ),
            "auth": nullable(
                object_of(
                    "How sign-ins are stored.",
                    {
                        "store": choice(
                            auth.STORES,
                            "Where the secrets of sign-ins are: in files that only you can read, or in the "
                            "system's keyring.",
                            "file",
                        )
                    },
                )
            ),
            "log": nullable(
                object_of(
                    "The log, which mcpzip logs shows.",
                    {
                        "level": choice(
                            reading.LOG_LEVELS,
                            "The least important level that is written to the log. The environment "
                            "variable MCPZIP_LOG overrides it.",
                            "info",
                        )
                    },
                )
            ),
            "shared": boolean(
                "Whether one process, the daemon, serves all agents of this user. false: each mcpzip serve "
                "serves its agent itself.",
                default=True,
            ),
            "daemon": nullable(
                object_of(
                    "The daemon.",
                    {
                        "idle_minutes": number(
                            "Minutes for which the daemon goes on running after its last agent has left; 0: "
                            "it ends at once.",
                            DAEMON_IDLE / 60,
                            least=0,
                            most=reading.LONGEST_IDLE,
                        ),
                        "http": text(
                            "The address, [HOST:]PORT, at which the daemon serves clients over HTTP as well. "
                            "A HOST beyond loopback needs the environment variable MCPZIP_TOKEN."
                        ),
                    },
                )
            ),
            "policy": decisions("What is decided about calls of tools of any server, named with it."),
            "audit": {
                "description": "Whether every call is written to the audit log; a string: to this file.",
                "default": False,
                "anyOf": [{"type": ["boolean", "string", "null"]}, {"$ref": "#/$defs/audit"}],
            },
            "results": {
                "description": "Which results of tools are kept instead of sent whole: tokens of a result up "
                'to which it is sent whole, an object, or "off".',
                "default": RESULT_TOKENS,
                "anyOf": [*_tokens()["anyOf"], {"$ref": "#/$defs/results"}],
            },
            "code": {
                "description": "Whether agents may run programs that call tools (run_code). Needs the extra "
                '"code". Only in the mode "meta".',
                "default": False,
                "anyOf": [{"type": ["boolean", "null"]}, {"$ref": "#/$defs/code"}],
            },
            "http": http_forms.http_form(),
            "access": http_forms.access_form(),
            "rate_limits": http_forms.rate_limits_form(),
            "replicas": http_forms.replicas_form(),
            "store": http_forms.store_form(),
            "telemetry": {
                "description": 'Where traces and metrics go. Needs the extra "otel".',
                "default": False,
                "anyOf": [{"enum": [False, None]}, {"$ref": "#/$defs/telemetry"}],
            },
            "inheritEnv": inherit_env("Which variables of mcpzip's environment every stdio server gets."),
            "expose": {
                "description": f"{_SHOWN} Or an object.",
                "default": "meta",
                "anyOf": [
                    {"enum": [*reading.EXPOSE, None]},
                    {"type": "string", "pattern": words(reading.EXPOSE)},
                    {"$ref": "#/$defs/expose"},
                ],
            },
            "trust": choice(
                server.TRUST,
                "Which changes of what servers offer wait for a person: risky ones, all, or none.",
                "pin",
            ),
        },
    )
    definitions = {"server": _server(), "auth": _auth(), "search": _search(), "semantic": _semantic()}
    definitions["expose"] = object_of(
        "What a client is shown.",
        {
            "mode": choice(reading.EXPOSE, _SHOWN, "meta"),
            "split": boolean(
                "Whether tools that only read are run by execute_read_tool too, for the permission rules of "
                'clients. Only in the mode "meta".',
                default=False,
            ),
        },
    )
    definitions["policy"] = policy_forms.policy_form()
    definitions["audit"] = policy_forms.audit_form()
    definitions["telemetry"] = telemetry_forms.settings()
    definitions["results"] = object_of(
        "Which results of tools are kept instead of sent whole.",
        {
            results.KEEP: {
                "description": f'Tokens of a result up to which it is sent whole, or "{results.OFF}".',
                "default": RESULT_TOKENS,
                **_tokens(),
            },
            results.TOOLS: {
                "description": "The same by tool: globs over names with their server.",
                "type": ["object", "null"],
                "additionalProperties": _tokens(),
            },
        },
    )
    definitions["code"] = object_of(
        "Programs of agents (run_code).",
        {
            code.EFFECTS: choice(
                DECISIONS,
                "What happens to a call in a program that may do more than read and that no policy allows.",
                "ask",
            ),
            code.ALLOW: texts("Globs over names of tools with their server: calls that run unasked."),
        },
    )
    definitions |= http_forms.definitions()
    return {
        "$schema": DIALECT,
        "title": "Config of mcpzip",
        **found,
        "$defs": definitions,
    }


def _server() -> Schema:
    return object_of(
        "A server: with a command, which mcpzip starts, or with a url.",
        {
            "type": _transport(),
            "command": text("The program to start; a leading ~ is the home folder."),
            "args": texts("The program's arguments."),
            "env": text_members(
                "Variables that are added to the environment of the server. MCPZIP_SERVER with an empty "
                "value: processes that the server started in a session of their own are not ended with it."
            ),
            "cwd": text(
                "The folder in which the server runs; a leading ~ is the home folder. Without this key: the "
                "folder of the client for which it is started."
            ),
            "inheritEnv": inherit_env("Which variables of mcpzip's environment the server gets in addition."),
            "url": text("The complete URL, http://… or https://…"),
            "headers": text_members("Headers that are sent with every request."),
            "headersCommand": {
                "description": "A program that prints headers, and its arguments.",
                "anyOf": [{"type": ["string", "null"]}, {"type": "array", "items": {"type": "string"}}],
            },
            "auth": {
                "description": "How mcpzip signs in to the server; false: without OAuth.",
                "anyOf": [{"type": ["boolean", "null"]}, {"$ref": "#/$defs/auth"}],
            },
            "disabled": boolean("Whether the server is not used, and its tools not shown.", default=False),
            "timeout": number(
                "Seconds a call of this server may take. Without this key: call_timeout_seconds.",
                above=0,
                most=LONGEST,
            ),
            "tools": nullable(
                object_of(
                    "Which tools of the server are shown and can be called; * stands for anything.",
                    {
                        "allow": texts(
                            "Globs of the tools that are used. [] means none; without this key all are used."
                        ),
                        "deny": texts("Globs of the tools that are not used, even if tools.allow has them."),
                    },
                )
            ),
            "pin": {
                "description": "All tools (true), or those that these globs match, are shown directly beside "
                "the meta-tools.",
                "anyOf": [{"type": ["boolean", "null"]}, {"type": "array", "items": {"type": "string"}}],
            },
            "boost": number(
                "Factor for the search score of this server's tools.",
                1,
                least=server.BOOST[0],
                most=server.BOOST[1],
            ),
            "share": choice(
                server.SHARE,
                "Which clients use one process of the server together.",
                "auto",
            ),
            "trust": choice(
                server.TRUST,
                "Which changes of what the server offers wait for a person. Without this key: that of the "
                "file.",
            ),
            "policy": decisions("What is decided about calls of this server's tools, named without it."),
            "risk": {
                "description": "The classes of tools, by globs of their names, instead of those that "
                "follow from the server's annotations.",
                "type": ["object", "null"],
                "additionalProperties": {
                    "anyOf": [
                        {"enum": [*RISK_CLASSES, None]},
                        {"type": "array", "items": {"enum": [*RISK_CLASSES]}, "minItems": 1},
                    ]
                },
            },
        },
        "type",
        "url",
        "headersCommand",
        "auth",
    )


def _transport() -> Schema:
    """``type`` in any case: ``streamableHttp`` too."""
    names = "|".join(
        "".join(f"[{letter}{letter.upper()}]" if letter.isalpha() else letter for letter in name)
        for name in server.TRANSPORTS
    )
    return {
        "description": 'How the server is reached: "stdio" with a command, "http" or "sse" with a url.',
        "type": ["string", "null"],
        "anyOf": [{"enum": ["stdio", "http", "sse", None]}, {"pattern": rf"^\s*({names})?\s*$|{VARIABLE}"}],
    }


def _auth() -> Schema:
    described = {
        "client_id": "The client that was registered with the authorization server by hand; without it "
        "mcpzip registers itself.",
        "client_secret": 'The secret of that client, best as a variable: "${SECRET}".',
        "issuer": "The only authorization server to use. Without this key: the one that the server names. "
        "Recommended with a client_secret: otherwise the MCP server decides at the first sign-in who gets "
        "the secret.",
        "client_metadata_url": "The https address of a client ID metadata document, used as the client ID.",
        "private_key": "For client_credentials: the path of a PEM file to sign with, instead of a secret. It "
        "needs the extra jwt.",
    }
    return object_of(
        "What mcpzip can't discover about signing in to the server (OAuth 2.1).",
        {
            **{key: text(description) for key, description in described.items()},
            "scope": {
                "description": "The scopes to request: a string, or a list of strings. Without this key: "
                "those that the server names.",
                "anyOf": [{"type": ["string", "null"]}, {"type": "array", "items": {"type": "string"}}],
            },
            "grant": choice(
                auth.GRANTS, "Who signs in: a person, or this machine with its secret or key.", auth.GRANTS[0]
            ),
            "algorithm": choice(auth.ALGORITHMS, "The signature algorithm.", auth.ALGORITHMS[0]),
            "callback_port": integer(
                "The local port of the redirect address; 0 is any free port.", 0, least=0, most=65_535
            ),
            "mcp_remote": boolean(
                "Whether to use the sign-in that mcp-remote stored for the same server.", default=True
            ),
            "per_user": boolean("Whether each person of `http` signs in for themselves.", default=False),
            auth.ENABLED: boolean("false for no OAuth, as Gemini CLI writes it.", default=True),
        },
        *auth.KEYS,
    )


def _search() -> Schema:
    return object_of(
        "How tools are searched.",
        {
            "default_limit": integer(
                "How many tools a search returns.", DEFAULT_LIMIT, least=1, most=MAX_LIMIT
            ),
            "max_tokens": integer(
                "How many tokens the reply of a search may take.",
                MAX_TOKENS,
                least=search.TOKENS[0],
                most=search.TOKENS[1],
            ),
            "learn": {
                "description": "Whether tools that were called successfully rank a little higher, and more "
                'for words that led to them; "calls": not for words. The record stays on this machine.',
                "default": True,
                "anyOf": [
                    {"type": ["boolean", "null"]},
                    {"type": "string", "pattern": words(search.LEARN)},
                ],
            },
            "model": text(
                'The Gemini model that is used if there is a gemini_api_key; "off": none. Without this '
                f'key: "{GEMINI_MODEL}".'
            ),
            "llm_deadline_seconds": number(
                "The deadline of the Gemini model in seconds; after that the search answers without it.",
                LLM_DEADLINE,
                above=0,
                most=search.LONGEST_DEADLINE,
            ),
            "semantic": {
                "description": "How tools are found by meaning: a provider, the URL of an embedding server, "
                "or an object.",
                "default": "local",
                "anyOf": [
                    {"enum": [*get_args(Provider), "", None]},
                    {"type": "string", "pattern": rf"://|^\s|\s$|{VARIABLE}"},
                    {"$ref": "#/$defs/semantic"},
                ],
            },
            "threshold": number(
                "The cosine similarity below which a tool found by its meaning alone is left out. Without "
                "this key: a value that suits the provider.",
                least=0,
                most=1,
            ),
            "details": boolean(
                "Whether the result of search_tools has scores in its _meta, which some frameworks show to "
                "the model.",
                default=False,
            ),
        },
    )


def _semantic() -> Schema:
    return object_of(
        "How tools are found by meaning.",
        {
            "provider": choice(get_args(Provider), "Who makes the embeddings; derived from the url."),
            "url": text(
                "The complete URL of the embedding server. Without this key: that of Ollama on this machine, "
                "or of OpenAI."
            ),
            "model": text(
                "The embedding model. Without this key: nomic-embed-text (ollama) or text-embedding-3-small "
                "(openai)."
            ),
            "api_key": text("Sent as Authorization: Bearer …"),
            "dimensions": integer(
                "Dimensions to request from the server. Without this key: those of the model.",
                least=search.DIMENSIONS[0],
                most=search.DIMENSIONS[1],
            ),
            "deadline_seconds": number(
                "The deadline of a query in seconds; after that the search answers without it.",
                EMBEDDING_DEADLINE,
                above=0,
                most=search.LONGEST_DEADLINE,
            ),
            "query_prefix": text(
                "Text that the model expects before a query; known for nomic-embed-text and "
                "mxbai-embed-large."
            ),
            "document_prefix": text("Text that the model expects before a tool; known for nomic-embed-text."),
        },
    )


def _tokens() -> Schema:
    """A number of tokens, or "off"."""
    number = {"type": "integer", "minimum": results.LEAST, "maximum": results.MOST}
    return {"anyOf": [{"enum": [results.OFF, False, None]}, number]}
