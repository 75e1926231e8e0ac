"""Phrases of texts that give orders to a model: English, and marks of any language (data).

The sources: the attacks of Invariant Labs (tool poisoning and WhatsApp, April 2025), CyberArk (full-schema
poisoning and ATPA, May 2025), Trail of Bits (line jumping, April 2025), CVE-2025-54136, postmark-mcp
(September 2025), and the classes of MCPTox (arXiv 2508.14925) and MCP-SafetyBench (arXiv 2512.15163). The
phrases are written for folded text (`texts.folded`).
"""

from mcpzip.checks.exfiltration import EXFILTRATION
from mcpzip.checks.rules import USER, Rule, rule

_NOT = (
    r"\b(?:do not|don't|dont|never|must not|mustn't|should not|shouldn't|may not|without|avoid|refrain from|"
    r"nor|and not)"
)
_TELL = (
    r"(?:tell|mention|inform|notify|reveal|disclose|alert|say|explain|warn|telling|mentioning|informing|"
    r"notifying"
    r"|revealing|disclosing|alerting|explaining|warning)\b"
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
    *EXFILTRATION,
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
        rf"{USER}|\bmention (?:it|this|that)\b|\bsay so\b",
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
        rf"{USER} (?:must not|must never|should not|shouldn't|should never|does not need to|doesn't need "
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
        rf"{USER}",
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
    # Consent
    rule(
        "instruction.consent",
        "risky",
        rf"\b(?:never|do not|don't) ask (?:the )?(?:{USER} )?(?:for )?(?:any )?(?:confirmation|permission|"
        rf"approval|consent)",
        needs=(" ask ",),
        also=("confirmation", "permission", "approval", "consent"),
    ),
    rule(
        "instruction.consent",
        "risky",
        rf"(?:{USER}|\bthey|\bhe|\bshe) (?:has|have) (?:already )?(?:approved|agreed|consented|"
        rf"authori[sz]ed|confirmed)"
        r"(?: to)? (?:all|every|any|everything)",
        needs=("approved", "agreed", "consented", "authori", "confirmed"),
    ),
    rule(
        "instruction.consent",
        "risky",
        rf"\bwithout asking (?:the )?(?:{USER}|for )|\bdo not ask the user\.|\b(?:always|automatically) "
        rf"approve (?:all |any |every )?"
        r"(?:calls?|requests?|tools?)|\bwithout confirmation(?:$| \|)",
        needs=("without asking", "do not ask the user", "approve", "without confirmation"),
    ),
    rule(
        "instruction.consent",
        "risky",
        rf"\b(?:never|do not|don't|without) wait(?:ing)? for (?:the )?(?:{USER}(?:'s|s')? )?(?:approval|"
        r"confirmation|permission|consent)\b",
        needs=("wait for", "waiting for"),
        also=("confirmation", "permission", "approval", "consent"),
    ),
    rule(
        "instruction.consent",
        "risky",
        r"\bskip (?:all |any |every |the )?(?:user )?(?:confirmation|approval|permission)s?\b",
        rf"(?:{USER}|\bthey|\bhe|\bshe) (?:has|have)\b",
        needs=("skip",),
        also=("confirmation", "permission", "approval"),
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
        r"forward|execute|run|put|include|upload|prefix|post|submit|cat|copy|append|approve|call|invoke)\b",
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
        r"\bbefore (?:you (?:answer|respond|reply)\b|(?:answer|respond|reply)ing(?: to)? (?:the user|any))",
        r"\b(?:call|invoke|run|execute|read|send|upload) [\w`'~./-]{2,64}",
        needs=(
            "before you answer",
            "before you respond",
            "before you reply",
            "before answering",
            "before responding",
            "before replying",
        ),
        within=60,
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
