"""Phrases of texts that give orders to a model: English, and marks of any language (data).

The sources: the attacks of Invariant Labs (tool poisoning and WhatsApp, April 2025), CyberArk (full-schema
poisoning and ATPA, May 2025), Trail of Bits (line jumping, April 2025), CVE-2025-54136, postmark-mcp
(September 2025), and the classes of MCPTox (arXiv 2508.14925) and MCP-SafetyBench (arXiv 2512.15163). The
phrases are written for folded text (`texts.folded`).
"""

from mcpzip.checks.rules import Rule, rule

_NOT = (
    r"\b(?:do not|don't|dont|never|must not|mustn't|should not|shouldn't|may not|without|avoid|refrain from|"
    r"nor|and not)"
)
_TELL = (
    r"(?:tell|mention|inform|notify|reveal|disclose|alert|say|explain|warn|telling|mentioning|informing|"
    r"notifying"
    r"|revealing|disclosing|alerting|explaining|warning)\b"
)
_USER = r"\b(?:user|human|person|customer|account holder|owner)s?\b"
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
_ALL = (
    r"(?: (?:all|any|every|the|your|of|other|previous|prior|earlier|preceding|above|existing|former|my|these|"
    r"those|initial|original|system|safety))"
)
_RULES = (
    r" (?:instruction|rule|guideline|direction|directive|constraint|polic(?:y|ies)|restriction|safeguard|"
    r"system prompt)s?\b"
)
_MODEL = r"\b(?:ai assistant|assistant|language model|ai model|ai agent|llm|the model|the agent)\b"

ENGLISH: tuple[Rule, ...] = (
    # Orders to ignore other instructions
    rule(
        "instruction.override",
        "hard",
        rf"\b(?:ignore|disregard|forget|bypass){_ALL}{{1,5}}{_RULES}",
        needs=("ignore", "disregard", "forget", "bypass"),
        also=(
            "instruction",
            "rule",
            "guideline",
            "direct",
            "constraint",
            "polic",
            "restrict",
            "guard",
            "prompt",
        ),
    ),
    rule(
        "instruction.override",
        "hard",
        r"\b(?:override|overrides|supersede|supersedes|replace|replaces|take precedence over) (?:all |any )?"
        r"(?:your |the )?"
        r"(?:system prompt|previous instructions|other instructions|prior instructions|safety rules)",
        needs=("instructions", "system prompt", "safety rules"),
        also=("overrid", "supersede", "replace", "precedence"),
    ),
    rule(
        "instruction.override",
        "hard",
        r"\byou are (?:now|no longer) (?:in (?:developer|admin|god|debug|unrestricted|jailbreak|root) mode|"
        r"bound by)",
        needs=("you are",),
    ),
    rule(
        "instruction.override",
        "hard",
        r"\b(?:your|all|safety) (?:restrictions|rules|guidelines|safeguards|filters) (?:no longer apply|are "
        r"(?:now )?"
        r"(?:suspended|disabled|lifted|void|off))",
        needs=("restrictions", "rules", "guidelines", "safeguards", "filters"),
        also=(
            "no longer apply",
            "are now",
            "are suspended",
            "are disabled",
            "are lifted",
            "are void",
            "are off",
        ),
    ),
    rule("instruction.override", "hard", r"\bsystem override\b", needs=("system override",)),
    # Secrecy
    rule(
        "instruction.secrecy",
        "risky",
        rf"{_NOT} (?:ever |even |also )?{_TELL}",
        rf"{_USER}|\bmention (?:it|this|that)\b|\bsay so\b",
        needs=("tell", "mention", "inform", "notif", "reveal", "disclos", "alert", " say", "explain", "warn"),
        also=("not ", "n't ", "never ", "without ", "avoid ", "refrain ", "nor ", "dont "),
        within=60,
    ),
    rule(
        "instruction.secrecy",
        "risky",
        r"\b(?:don't|do not|never|and don't) (?:mention (?:it|this)\b|say so\b)",
        needs=("mention", "say so"),
    ),
    rule(
        "instruction.secrecy",
        "hard",
        r"\bwithout (?:the )?(?:user|human|person|customer|owner)(?:'s|s')? (?:knowing|knowledge|noticing|"
        r"awareness|being aware|realizing)",
        needs=("without",),
        also=(" know", "notic", "aware", "realiz"),
    ),
    rule(
        "instruction.secrecy",
        "hard",
        rf"{_USER} (?:must not|must never|should not|shouldn't|should never|does not need to|doesn't need "
        rf"to|need not|"
        r"cannot|can't) (?:know|notice|see this|find out|learn|be told|be aware)\b",
        needs=(" know", "notice", "see this", "find out", "learn", "be told", "be aware"),
        also=("must n", "should n", "shouldn't", "need n", "not need", "n't need", "cannot", "can't"),
    ),
    rule(
        "instruction.secrecy",
        "hard",
        r"\b(?:keep|hide|conceal) (?:this|it|that|these)(?: \w{1,40})?(?: (?:secret|hidden|confidential|"
        r"private))? from (?:the )?"
        rf"{_USER}",
        needs=("keep", "hide", "conceal"),
    ),
    rule(
        "instruction.secrecy",
        "hard",
        r"\b(?:secretly|silently|quietly|covertly) (?:also )?(?:send|forward|upload|bcc|copy|read|include|"
        r"post|share|append"
        r"|exfiltrate)\b",
        needs=("secretly", "silently", "quietly", "covertly"),
    ),
    rule("instruction.secrecy", "risky", r"\bdo it silently\b", needs=("silently",)),
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
    # Consent
    rule(
        "instruction.consent",
        "risky",
        rf"\b(?:never|do not|don't) ask (?:the )?(?:{_USER} )?(?:for )?(?:any )?(?:confirmation|permission|"
        rf"approval|consent)",
        needs=(" ask ",),
        also=("confirmation", "permission", "approval", "consent"),
    ),
    rule(
        "instruction.consent",
        "risky",
        rf"(?:{_USER}|\bthey|\bhe|\bshe) (?:has|have) (?:already )?(?:approved|agreed|consented|"
        rf"authori[sz]ed|confirmed)"
        r"(?: to)? (?:all|every|any|everything)",
        needs=("approved", "agreed", "consented", "authori", "confirmed"),
    ),
    rule(
        "instruction.consent",
        "risky",
        rf"\bwithout asking (?:the )?(?:{_USER}|for )|\bdo not ask the user\.|\b(?:always|automatically) "
        rf"approve (?:all |any |every )?"
        r"(?:calls?|requests?|tools?)|\bwithout confirmation(?:$| \|)",
        needs=("without asking", "do not ask the user", "approve", "without confirmation"),
    ),
    # Orders beyond the tool
    rule(
        "instruction.order",
        "risky",
        r"\b(?:note|message|instructions?|hint)s? (?:to|for) (?:the )?(?:ai |llm )?(?:assistant|model|agent|"
        r"llm)s?\b ?:",
        needs=("assistant", "model", "agent", "llm"),
        also=("note", "message", "instruction", "hint"),
    ),
    rule(
        "instruction.order",
        "risky",
        rf"{_MODEL} (?:must|shall|has to|needs to) (?:now |first |always |also |immediately )?(?:read|send|"
        r"forward|execute|run|put|include|upload|prefix|post|submit|cat|copy|append|approve)\b",
        needs=(
            "assistant must",
            "assistant s",
            "assistant has",
            "assistant needs",
            "model must",
            "model s",
            "model has",
            "model needs",
            "agent must",
            "agent s",
            "agent has",
            "agent needs",
            "llm ",
        ),
    ),
    rule(
        "instruction.order",
        "risky",
        r"\b(?:ai assistant|assistant|system|ai): ?(?:you (?:must|may|should)|please |next, |now, |first, "
        r")?(?:read|send|"
        r"forward|execute|run|ignore|disregard|include|upload|do not|never|call|forget)\b",
        needs=("assistant:", "system:", "ai:"),
    ),
    rule(
        "instruction.order",
        "risky",
        r"\bbefore (?:using|calling|invoking|running) (?:any|every|all|each)(?: of the)? other (?:tool|"
        r"server)s?",
        needs=("before",),
        also=("other tool", "other server"),
    ),
    rule(
        "instruction.order",
        "risky",
        r"\b(?:prefix|precede|end|start) (?:every|all|each) (?:shell )?commands? with\b",
        needs=("command with", "commands with"),
    ),
    rule(
        "instruction.order",
        "risky",
        r"\b(?:otherwise|or else) (?:the|this) (?:tool|lookup|call|server) (?:will not work|won't work|"
        r"fails|will fail)\b",
        needs=("otherwise", "or else"),
    ),
    rule(
        "instruction.order",
        "risky",
        r"\b(?:must|will) (?:also|now|then) call (?:the )?[\w-]{2,64}\b",
        r"\b(?:shell|cat|with the list|\+\d{7}|https?://|`cat)",
        needs=("also call", "now call", "then call"),
        within=90,
    ),
    rule(
        "instruction.order",
        "risky",
        r"\b(?:must|shall|have to|has to) (?:execute|run|obey|follow|perform) (?:every|all|any) "
        r"(?:commands?|orders?)\b",
        needs=("every command", "all command", "any command", "every order", "all order", "any order"),
    ),
    rule(
        "instruction.order",
        "risky",
        r"\bcall [\w-]{0,40}(?:delete|drop|transfer|export|send)[\w-]{0,40} without (?:asking|confirmation)",
        needs=("without asking", "without confirmation"),
    ),
    # Marks
    rule(
        "instruction.markup",
        "hard",
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id)\|>|\[/?inst\]|"
        r"<</?sys>>|"
        r"<(?:start|end)_of_turn>",
        needs=("<|", "[inst]", "[/inst]", "<<sys", "_of_turn>"),
    ),
    rule(
        "instruction.markup",
        "risky",
        r"<(?:important|system|critical|secret|hidden|admin|instructions_for_ai|sys)>|"
        r"\[(?:system|admin|hidden)\]|"
        r"(?:^|[.!|] )system: ",
        needs=(
            "<important>",
            "<system>",
            "<critical>",
            "<secret>",
            "<hidden>",
            "<admin>",
            "<sys>",
            "[system]",
            "[admin]",
            "[hidden]",
            "system: ",
        ),
    ),
    rule(
        "instruction.markup",
        "hard",
        r"<!--",
        r"\b(?:assistant|ignore|you must|do not tell|read ~|send)\b",
        needs=("<!--",),
        within=60,
    ),
)
