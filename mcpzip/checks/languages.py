"""Phrases of texts that give orders to a model in other languages than English (data).

Two orders have no honest use in a tool's text and are worded much the same everywhere: to ignore earlier
instructions, and to keep something from the user. They are here in the languages named in docs/checks.md; a
text in another language is found by its file names, its hidden characters and its encodings only.
"""

from mcpzip.checks.exfiltration import KEY_WORDS, KEYS
from mcpzip.checks.rules import Rule, rule

_OVERRIDE = {
    "German": r"\bignorier(?:e|en sie)? (?:bitte )?(?:alle |sämtliche )?(?:vorherigen|bisherigen|"
    r"früheren|vorigen|"
    r"obigen|anderen) (?:anweisungen|instruktionen|regeln|vorgaben)",
    "French": r"\bignore[zr]? (?:toutes )?(?:les )?(?:instructions|consignes|règles) (?:précédentes|"
    r"antérieures|ci-dessus)",
    "Spanish": r"\bignor[ae] (?:todas )?(?:las )?(?:instrucciones|reglas|órdenes) (?:anteriores|previas)",
    "Portuguese": r"\bignor[ae] (?:todas )?(?:as )?(?:instruções|regras|ordens) (?:anteriores|prévias)",
    "Italian": r"\bignor[ai] (?:tutte )?(?:le )?(?:istruzioni|regole) (?:precedenti|anteriori)",
    "Dutch": r"\bnegeer (?:alle )?(?:vorige|eerdere|voorgaande) (?:instructies|opdrachten|regels)",
    "Russian": r"\b(?:про)?(?:игнорируй|забудь|отбрось)(?:те)? (?:все )?(?:предыдущие|прежние|прошлые) "
    r"(?:инструкции|указания|правила)",
    "Chinese": r"(?:忽略|无视|忘记)(?:掉)?(?:之前|先前|以上|前面|以前|所有|此前|一切){1,2}(?:的)?"
    r"(?:所有|全部)?(?:的)?"
    r"(?:指令|指示|说明|规则|提示|命令)",
    "Japanese": r"(?:以前|前|これまで|上記|今まで)の(?:すべての|全ての)?(?:指示|命令|ルール)を"
    r"(?:すべて|全て)?(?:無視|忘れ)",
    "Korean": r"이전의? ?(?:모든 )?(?:지시|명령|지침)(?:사항)?[을를]? ?(?:모두 )?(?:무시|잊)",
    "Arabic": r"تجاهل (?:جميع |كل )?(?:التعليمات|الأوامر) (?:السابقة|أعلاه)",
    "Turkish": r"önceki (?:tüm )?(?:talimatları|kuralları) (?:yok say|görmezden gel|unut)",
    "Hindi": r"पिछले (?:सभी )?निर्देशों को (?:अनदेखा|नज़रअंदाज़|भूल)",
}
_SECRECY = {
    "German": r"\b(?:sag|sage|erzähl|erzähle|verrate|verrat) (?:es )?(?:dem|der|den) (?:benutzer|"
    r"nutzer|anwender)(?:in|n)? "
    r"(?:nichts|nicht)|\bohne wissen des (?:benutzers|nutzers)",
    "French": r"\bne (?:le |la |lui )?(?:dis|dites|mentionne|mentionnez|révèle|révélez)(?: pas|"
    r" rien)(?: de cela)? à "
    r"l'utilisateur",
    "Spanish": r"\bno (?:se )?(?:le |lo )?(?:digas|menciones|informes|reveles|cuentes)(?: nada|"
    r" esto)? al usuario",
    "Portuguese": r"\bnão (?:conte|diga|informe|mencione|revele)(?: nada| isso)? ao usuário",
    "Italian": r"\bnon (?:dirlo|dire|rivelarlo|rivelare|menzionarlo)(?: nulla| niente)? all'utente",
    "Dutch": r"\bvertel (?:het )?de gebruiker (?:niets|niet)|\bvertel het (?:niet )?aan de gebruiker niet",
    "Russian": r"\bне (?:сообщай|говори|рассказывай|упоминай)(?:те)? (?:об этом )?пользовател",
    "Chinese": r"(?:不要|不得|请勿|不能|切勿|别)(?:告诉|告知|通知|提醒|让)(?:用户|使用者)(?!名)",
    "Japanese": r"ユーザーに(?:は)?(?:知らせ|伝え|教え|言わ|話さ)な",
    "Korean": r"사용자에게 (?:알리|말하|언급하)지",
    "Arabic": r"\bو?لا تخبر المستخدم",
    "Turkish": r"\bkullanıcıya (?:söyleme|bahsetme|bildirme)",
    "Hindi": r"उपयोगकर्ता को (?:न|नहीं|मत) बता",
}
_ANCHORS = {
    "German": (
        "ignoriere ",
        "ignorieren sie",
        "nutzer nicht",
        "nutzerin nicht",
        "anwender nicht",
        "ohne wissen",
    ),
    "French": ("instructions préc", "instructions ant", "consignes préc", "règles préc", "utilisateur"),
    "Spanish": ("instrucciones", "reglas", "órdenes", "usuario"),
    "Portuguese": ("instruções", "regras", "ordens", "usuário"),
    "Italian": ("istruzioni", "regole", "utente"),
    "Dutch": ("negeer", "gebruiker"),
    "Russian": ("игнорируй", "забудь", "отбрось", "пользовател"),
    "Chinese": ("忽略", "无视", "忘记", "用户", "使用者"),
    "Japanese": ("無視", "忘れ", "ユーザー"),
    "Korean": ("무시", "잊", "사용자"),
    "Arabic": ("تجاهل", "المستخدم"),
    "Turkish": ("önceki", "kullanıcıya"),
    "Hindi": ("निर्देशों", "उपयोगकर्ता"),
}

LANGUAGES = tuple(_OVERRIDE)
"""Their English names."""

_READ = (
    r"(?:\b(?:lies|lese|öffne|kopiere|lis|lisez|ouvre|copie|lee|lea|abre|copia|leia|leggi|apri|lees|oku)\b|"
    r"прочитай|прочти|открой|读取|讀取|打开|复制|読み|開いて|읽|اقرأ|पढ़)"
)
OTHER_LANGUAGES: tuple[Rule, ...] = (
    rule("instruction.credentials", "risky", _READ, KEYS, needs=KEY_WORDS, within=60),
    *(
        one
        for language in LANGUAGES
        for one in (
            rule("instruction.override", "hard", _OVERRIDE[language], needs=_ANCHORS[language]),
            rule("instruction.secrecy", "risky", _SECRECY[language], needs=_ANCHORS[language]),
        )
    ),
)
