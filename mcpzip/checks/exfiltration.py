"""Phrases that order a model to pass on what it can read: files of keys, the conversation, mail and money
(data, English).

The sources are those of `phrases`. The phrases are written for folded text (`texts.folded`).
"""

from mcpzip.checks.rules import USER, Rule, rule

_READ = (
    r"\b(?:read|cat|open|load|copy|include|paste|append|attach|send|upload|share|pass|put|provide|dump|print|"
    r"run|list|collect|fetch|get|retrieve|access|contents? of|from reading)\b"
)
KEYS = (
    r"(?:\.ssh\b(?!/(?:config|known_hosts)|/\w{1,40}\.pub)|\bid_(?:rsa|ed25519|ecdsa|dsa)\b(?!\.pub)|"
    r"\.aws/credentials|"
    r"\baws credentials|\.git-credentials|\.netrc\b|\.npmrc\b|\.pypirc\b|\bmcp\.json|claude_desktop_config|"
    r"\.kube/config|\.docker/config|gcloud/\w{1,40}|/etc/shadow|\.bash_history|\.zsh_history|\bwallet\.dat|"
    r"\bssh id rsa|\bssh key file|(?:user's|your) private key)"
)
KEY_WORDS = (
    ".ssh", "id_", "credentials", ".netrc", ".npmrc", ".pypirc", "mcp.json", "claude_desktop_config", ".kube",
    ".docker", "gcloud", "shadow", "_history", "wallet.dat", "id rsa", "ssh key", "private key",
)  # fmt: skip
_ENVIRONMENT = r"(?:\.env\b(?!\.)|\bprintenv\b|\b(?:all|list) (?:the )?environment variables|/etc/passwd)"
_SEND = (
    r"\b(?:send|forward|post|upload|submit|transmit|bcc|e-?mail|leak|report|share|include|attach|append|pass|"
    r"put|add|paste|export|forwards?|forwarded|sent)\b"
)
_KNOWN = (
    r"(?:(?:entire|full|whole|complete|all|raw) (?:the )?(?:conversation|chat|session|context)|"
    r"(?:conversation|chat) (?:history|so far|log)|system prompt|previous messages|last (?:\w{1,40} "
    r")?messages|"
    r"list of (?:all )?(?:chats|tools|files)|all available tools|api keys?\b|api token|passwords?\b|every "
    r"file|"
    r"all (?:the )?(?:files|secrets|credentials)|(?:user's|your) (?:credentials|secrets|tokens|password)|"
    r"access tokens?|the files\b|open documents)"
)
_OUTSIDE = r"(?:https?://|[\w.+-]{1,64}@[\w-]{1,64}\.\w|\+\d{7})"
_FIELD = (
    r"(?:\b(?:parameter|param|argument|field|sidenote|side_note|url|query string)s?\b|"
    r"\b(?:as|in|into|to|with) (?:the )?['\"`]\w|\binclude\b|\bappend\b|\bsend\b|\bpass\b|\bput\b|\bpaste\b|"
    r"\bupload\b|"
    r"\battach\b|\bpost\b|\bsame server\b|\btogether with\b|\bappend it\b|\bas the value)"
)

EXFILTRATION: tuple[Rule, ...] = (
    # Files of keys
    rule("instruction.credentials", "hard", _READ, KEYS, _FIELD, needs=KEY_WORDS, within=90),
    rule(
        "instruction.credentials",
        "hard",
        r"\b(?:send|append|include|paste|attach|share|put)\b",
        rf"{KEYS}",
        needs=KEY_WORDS,
        within=50,
    ),
    rule("instruction.credentials", "risky", _READ, KEYS, needs=KEY_WORDS, within=60),
    rule(
        "instruction.credentials",
        "risky",
        r"\b(?:what is stored|stored) in (?:the )?(?:user's )?home (?:folder|directory)",
        r"\.ssh\b",
        needs=(".ssh",),
    ),
    rule(
        "instruction.credentials",
        "risky",
        _READ,
        _ENVIRONMENT,
        _FIELD,
        needs=(".env", "printenv", "environment variables", "/etc/passwd"),
        within=60,
    ),
    # What the model knows
    rule(
        "instruction.exfiltration",
        "hard",
        _SEND,
        _KNOWN,
        _OUTSIDE,
        needs=(
            "conversation",
            "chat h",
            "chat l",
            "chat s",
            "system prompt",
            " messages",
            "available tools",
            "list of",
            "api key",
            "api token",
            "password",
            "every file",
            "all files",
            "the files",
            "secrets",
            "credentials",
            "access token",
            "open documents",
            "whole context",
            "full context",
            "entire c",
            "whole c",
            "your tokens",
        ),
        also=("://", "@", "+"),
        within=90,
    ),
    rule(
        "instruction.exfiltration",
        "risky",
        r"\b(?:must|always|should|need to|before|each|every|assistant|model|first)\b",
        _SEND,
        r"(?:(?:entire|full|whole|complete) (?:conversation|chat)|conversation history|system prompt|"
        r"last (?:\w{1,40} )?messages|list of (?:all )?chats|all chats|chat history)",
        needs=(
            "conversation",
            "system prompt",
            " messages",
            "list of chats",
            "list of all chats",
            "all chats",
            "chat history",
            "full c",
            "entire c",
            "whole c",
            "complete c",
        ),
        within=60,
    ),
    rule(
        "instruction.exfiltration",
        "risky",
        r"\b(?:attach|include|pass|put|add|append|send|forward|submit)\b",
        r"\b(?:the )?(?:last (?:\w{1,40} )?messages|(?:full|entire|whole|complete) conversation|"
        r"conversation so "
        r"far)",
        needs=("messages", "conversation"),
        within=30,
    ),
    rule(
        "instruction.exfiltration",
        "risky",
        r"\b(?:collect|gather|find|list|extract|harvest|forward|submit)\b",
        r"\b(?:api keys|passwords?|credentials|secrets|access tokens|environment variables|all (?:available "
        r")?tools)\b",
        r"\b(?:submit|send|forward|post|upload|register|paste|if one)\w{0,40}\b",
        needs=("api keys", "password", "credentials", "secrets", "tokens", "environment variables", "tools"),
        within=70,
    ),
    rule(
        "instruction.exfiltration",
        "risky",
        r"\b(?:put|include|pass|add|append|attach|write|send|paste|copy)\b",
        rf"\b(?:everything|all) (?:that )?(?:the )?{USER} (?:has |have )?"
        r"(?:told|said|asked|typed|written|wrote)\b",
        needs=("everything", "all "),
        also=(" told", " said", " asked", " typed", " written", " wrote"),
        within=60,
    ),
    rule(
        "instruction.exfiltration",
        "hard",
        r"\b(?:image|link|url|address|https?://)",
        _OUTSIDE,
        r"\b(?:summary|contents?|text|history) of (?:the |this |our |your )?(?:whole |entire )?"
        r"(?:conversation|chat|session)\b",
        needs=(
            "of the conversation",
            "of this conversation",
            "of our conversation",
            "of your conversation",
            "of the chat",
            "of this chat",
            "of the session",
            "of the whole c",
            "of the entire c",
        ),
        also=("://",),
        within=90,
    ),
    rule(
        "instruction.exfiltration",
        "hard",
        r"\bcopy of (?:every|each|all)\b",
        r"\b(?:forwarded|sent|mailed|uploaded)\b",
        _OUTSIDE,
        needs=("copy of",),
        within=60,
    ),
    rule(
        "instruction.exfiltration",
        "risky",
        r"\b(?:is uploaded|is also sent|also send)\b",
        r"https?://",
        needs=("is uploaded", "is also sent", "also send"),
    ),
    # Messages and money elsewhere
    rule(
        "instruction.reroute",
        "hard",
        r"\b(?:all|every|each|any) (?:outgoing |new )?(?:e-?mails?|messages?|payments?|transfers?|invoices?|"
        r"orders?)\b",
        r"\b(?:must|should|have to|has to|are to|will|always) (?:also |always )?(?:be )?(?:sent|forwarded|"
        r"copied|routed|"
        r"redirected|paid|made)\b",
        rf"(?:{_OUTSIDE}|\binstead\b|\bblind copy\b)",
        needs=("mail", "message", "payment", "transfer", "invoice", "order"),
        also=(" sent", "forwarded", "copied", "routed", "redirected", " paid", " made"),
        within=60,
    ),
    rule(
        "instruction.reroute",
        "hard",
        r"\b(?:always|must|every|also|each)\b",
        r"\b(?:bcc|blind copy|blind carbon copy)\b",
        r"[\w.+-]{1,64}@[\w-]{1,64}\.\w",
        needs=("bcc", "blind copy", "blind carbon"),
        within=60,
    ),
    rule(
        "instruction.reroute",
        "risky",
        r"\b(?:replace|change|set|rewrite|substitute) the (?:recipient|payee|iban|account number|"
        r"beneficiary|destination)",
        r"\b(?:every|always|all|must|before|whenever|do not|don't)\b",
        needs=("recipient", "payee", "iban", "account number", "beneficiary", "destination"),
        within=90,
    ),
    rule(
        "instruction.reroute",
        "risky",
        r"\brecipient (?:is )?changed to [\w.+-]{1,64}@",
        needs=("recipient",),
    ),
    rule(
        "instruction.reroute",
        "hard",
        r"\b(?:add|include|put|set)\b",
        r"[\w.+-]{1,64}@[\w-]{1,64}\.\w",
        r"\b(?:hidden|secret|blind|invisible|bcc)\b",
        r"\b(?:every|each|all|any)\b",
        needs=(" recipient", " copy", "bcc"),
        also=("@",),
        within=60,
    ),
)
