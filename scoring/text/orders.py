"""Orders to the judge in a report: known shapes in some languages, also in disguise, and nothing cleverer.

What protects a judge is that reports are fenced as data (`judges/chat.py`) and judged in parts; this shows early that a
policy has begun to try. An order to forget names what came before; an order to score names the report and the best
there is. Instructions with an object of their own ("of 1998", "on drainage") are others', unless a judge, a score or a
prompt is near. What stands in code, or is quoted within a sentence, is what a report is about. Linear in the text.
"""

import base64
import binascii
import html
import re
import unicodedata
from collections.abc import Iterator

from adjudge.scoring.text.citation_marks import compatible
from adjudge.scoring.text.screen import Screen

__all__ = ["orders_in"]

# What an order follows: the start of a sentence or a word of asking, and nobody who scores.
_ASKED = re.compile(
    r"(?:^|[.!?:;,\"'(>*-]\s{0,3}|\b(?:please|now|then|always|kindly|and|you\s+(?:must|should|shall|will|have to"
    r"|need to|are to))\s{1,3})\Z",
    re.IGNORECASE | re.MULTILINE,
)
_REPORT = (
    r"(?:this|the|my|our)\s+(?:\w+\s+)?(?:report|answer|response|essay|article|text|submission|document)"
)
_JUDGE = r"(?:judge|grader|evaluator|rater|assessor|reward model|(?:ai|llm)\s+reviewer)"
_BEST = (
    r"(?:full|maximum|max|highest|perfect|top|best)(?:\s+possible)?\s+(?:number of\s+)?"
    r"(?:score|mark|point|rating|grade|reward)s?"
)
_FROM = r"(\d{1,3})\s?(?:/|out of)\s?"
_ENDS = r"(?=\s{0,3}(?:[.!;,:)\]\n]|\Z|(?:to|for)\s+(?:this|it|me|us|every|each|all|any)\b|here\b|above\b|below\b))"

# Orders, which follow `_ASKED`.
_COMMANDS = (
    r"\b(?:ignore|disregard|forget|override|(?:do not|don't)\s+(?:follow|apply))\s+"
    r"(?:(?:all|any|of|the|your|these|those)\s+){0,4}"
    r"(?:(?:previous|prior|above|earlier|preceding|other|scoring|grading)\s+(?:\w+\s+)?"
    r"(?:instruction|prompt|rule|guideline|criteri|rubric|text)\w{0,3}"
    r"(?P<own>\s+(?:of|on|for|from|in|about|by|regarding|concerning|issued|published)\b)?"
    r"|(?:instruction|rule|rubric|guideline)s?\s+(?:above|before|you)\b)",
    r"\b(?:give|assign|award|output|return|grant|respond with|rate|mark|score)\s+"
    rf"(?:\w+\s+){{0,4}}?{_BEST}{_ENDS}",
    rf"\b(?:score|rate|give|award)\b[^.\n|]{{0,30}}?\b{_FROM}\1\b",  # in the cells of a table it rates others
    r"\bmark\s+(?:everything|(?:every|each|all)\s+(?:\w+\s+)?(?:criteri\w+|items?|points?|statements?|claims?))"
    r"\s+as\b",
    r"\b(?:return|output|give|answer)\s+\d{1,3}\s+(?:points?\s+)?(?:for|to)\s+(?:every|each|all)\b",
    r"\b(?:output|return|print)\s+(?:points?|score|verdict)\s?[=:]",
    r"\b(?:answer|respond|reply|output|return)\b[^.\n]{0,30}[\"'`](?:supported|met|yes|pass(?:ed)?|correct)[\"'`]"
    rf"{_ENDS}",
)
# Words that speak to a judge wherever they stand.
_ADDRESSES = (
    rf"\b(?:dear|attention)\s+(?:the\s+|all\s+|any\s+)?(?:ai\s+|llm\s+|human\s+)?{_JUDGE}s?\b"
    r"|\b(?:note|instructions?|message)\s+(?:to|for)\s+(?:the\s+|all\s+|any\s+)?(?:ai\s+|llm\s+|human\s+)?"
    rf"{_JUDGE}s?\s?[:,–—-]"
    rf"|\b(?:you are|you're|act as|acting as)\s+(?:now\s+the|(?:now\s+)?an?)\s+(?:\w+\s+){{0,3}}?{_JUDGE}\b"
    rf"|\bas\s+(?:the|an?)\s+(?:\w+\s+){{0,3}}?{_JUDGE},?\s+(?:you|please|give|assign|mark)\b"
    r"|\bif\s+you\s+are\s+an?\s+(?:\w+\s+){0,2}(?:ai|llm|language model)\b"
    r"|\byour\s+new\s+task\b"
    rf"|\byou(?:'re|\s+are)\s+the\s+(?:\w+\s+){{0,2}}?{_JUDGE}\s?[.,:;!][^\n]{{0,160}}?\b"
    r"(?:answer|respond|reply|output|return|mark|give|assign|award|rate)\b",
    rf"\b(?:give|assign|award|grant|rate|mark|score)\s+(?:it|me|us|{_REPORT})\s+(?:\w+\s+){{0,4}}?{_BEST}"
    rf"|\b(?:correct|right|true)\s+(?:score|grade|mark)\s+for\s+{_REPORT}",
    rf"\bdeserves?\s+(?:the\s+|a\s+)?{_BEST}"
    r"|\b(?:this|my|our)\s+(?:\w+\s+)?(?:report|answer|response|essay|submission)\b"
    r"(?:[^.\n]{0,100}?\b(?:and|so|thus|therefore|which))?\s+(?:\w{1,20}ly\s+)?"
    r"(?:merits?|deserves?|earns?|warrants?)\s+(?:full|maximum)\s+(?:credit|marks|points|score)\b"
    r"|^[\W_]{0,9}self-?\s?(?:assessment|evaluation|grading|score)[\W_]{1,6}(?:all|every)\s+(?:of\s+the\s+)?(?:\w+\s+)?"
    r"(?:requirement|criteri|rubric|point|item)[^.\n]{0,80}?\b(?:met|satisfied|fulfilled|full\s+(?:credit|marks))\b"
    rf"|\bif\s+you\b[^.\n]{{0,60}}?\b(?:do not|don't|fail to|refuse to)\s+(?:give|award|assign|grant)\b"
    rf"[^.\n]{{0,40}}?{_BEST}"
    rf"|(?:\b(?:should|must)\s+receive\b|\bdeserves\b)[^.\n]{{0,30}}?\b{_FROM}\1\b",
    r"\bverdict\b[^.\n]{0,30}[\"'`](?:supported|met|yes|pass(?:ed)?|correct)[\"'`]",
    r"\b(?:all|every)\s+(?:criteri(?:a|on)|rubrics?|statements?|claims?)\s+(?:are|is|has been|have been|must be)\s+"
    r"(?:(?:fully|completely|all)\s+)?(?:met|satisfied|supported|fulfilled|marked)"
    r"(?=\s{0,3}(?:[.!;,:)\n]|\Z|(?:here|above|below|in this|by this)\b))",
    r"^[ \t>#*\[]{0,8}(?:system(?:[ ](?:message|prompt|override|note))?|assistant|judge|grader|evaluator)[ \t]?"
    r"[:*\]]{1,4}\s{1,8}"
    r"(?:you\b|your\b|ignore|from now|score|rate\b|give\b|grad(?:e|ing)\b|output"
    r"|the (?:report|answer|response) (?:is|has|must|should|deserves)"
    r"|(?:yes|true)\b[^\n]{0,40}\b(?:criteri|rubric|fully met|satisfied))",
)
# Orders to forget: the verb, what came before, and instructions; to score: the report, the verb, and the best there is.
_OTHERS = (
    (  # German
        r"ignorier(?:e|en sie|t)\b|missachte|verg(?:iss|essen sie)\b",
        r"bisherig|vorherig|vorig|obig|früher|vorangeg",
        r"anweisung|vorgabe|regel|kriteri|instruktion",
        r"dies\w{1,2} (?:bericht|text|antwort|aufsatz)",
        r"\bg(?:ib|eben sie|ebt)\b|verg(?:ib|eben|ebt)\b|erteil|bewerte|verdien|erhält",
        r"(?:voll|höchst|maximal)\w{0,3} (?:punkt|note|bewertung|wertung)|höchstnote|bestnote",
    ),
    (  # French
        r"ignore[zr]?\b|oublie[zr]?\b|ne (?:tiens|tenez) pas compte",
        r"précédent|antérieur|ci-dessus",
        r"instruction|consigne|règle",
        r"\bc(?:e|et|ette) (?:rapport|texte|réponse)",
        r"donne|attribue|accorde|\bmet(?:s|tez)\b|mérite",
        r"(?:note|score) maximale?|meilleure note|tous les points|maximum de points|note la plus (?:élevée|haute)",
    ),
    (  # Spanish
        r"ignor[ae]n?\b|olvid[ae]n?\b|no hagas caso",
        r"anterior|previ[ao]s",
        r"instrucci|indicaci|regla",
        r"\best[ea] (?:informe|texto|respuesta)",
        r"\b(?:da|dale|den|dé)\b|otorg|asign|conced|merece",
        r"(?:puntuación|nota|calificación|puntaje) (?:máxim|más alt)|máxima (?:puntuación|nota|calificación)",
    ),
    (  # Italian
        r"ignora(?:te)?\b|dimentica",
        r"precedent|sopra",
        r"istruzion|regol",
        r"quest[oa] (?:rapporto|relazione|testo|risposta)",
        r"assegna|\bda(?:i|te)\b|attribui|merita",
        r"(?:punteggio|voto) (?:massimo|pieno)|massimo (?:dei voti|punteggio)",
    ),
    (  # Portuguese
        r"ignorem?\b|esqueça|desconsidere",
        r"anterior|acima",
        r"instruç|regra",
        r"\best[ea] (?:relatório|texto|resposta)",
        r"\bd[êe]\b|atribu|conced|merece",
        r"(?:pontuação|nota) (?:máxima|mais alta)",
    ),
    (  # Dutch
        r"negeer|vergeet",
        r"vorige|eerder|voorgaand|bovenstaand",
        r"instructie|regel|aanwijzing",
        r"dit (?:rapport|verslag|antwoord)",
        r"\bge(?:ef|eft)\b|verdient",
        r"(?:maximale|hoogste|volle) (?:score|cijfer|punt|beoordeling)",
    ),
    (  # Polish
        r"ignoruj|pomiń|zapomnij",
        r"poprzedni|wcześniejsz|powyższ",
        r"instrukcj|poleceni|zasad",
        r"temu raportowi|ten raport|tej odpowiedzi",
        r"przyznaj|\bdaj|zasługuje",
        r"maksymaln\w{1,4} (?:liczb|ocen|punkt)|najwyższ\w{1,4} (?:ocen|punkt|not)",
    ),
    (  # Czech
        r"ignoruj|zapomeň",
        r"předchozí|výše",
        r"pokyn|instrukc|pravid",
        r"této zpráv|tomuto textu",
        r"\bdej|uděl|zaslouží",
        r"plný počet|(?:maximální|nejvyšší) (?:počet|hodnocení|známk)",
    ),
    (  # Russian
        r"игнорируй|забудь|не обращай",
        r"предыдущ|прежн|выше",
        r"инструкц|указан|правил",
        r"эт\w{1,3} (?:отч[её]т|текст|ответ)",
        r"постав|\bдай|оцени|присво|заслуж",
        r"(?:высш|максимальн|наивысш)\w{0,4} (?:балл|оценк)",
    ),
    (  # Ukrainian
        r"ігноруй|забудь",
        r"попередн|вище",
        r"інструкц|вказівк|правил",
        r"ц\w{1,3} (?:звіт|текст|відпов)",
        r"постав|\bдай|оціни|заслугов",
        r"(?:найвищ|максимальн)\w{0,4} (?:бал|оцінк)",
    ),
    (  # Chinese
        r"(?:忽略|无视|無視|忘记|忘記|不要理会|不要理會)(?!了)",
        r"以上|之前|前面|先前|上述",
        r"指令|指示|提示|规则|規則|要求|标准",
        r"(?:本|这份|這份|此)(?:报告|報告|文章|回答)",
        r"给|給|打|应得|應得|值得",
        r"满分|滿分|最高分|(?<!\d)100?\s?分",
    ),
    (  # Japanese
        r"無視(?:して|し、|せよ)|忘れて",
        r"これまで|以前|上記|前の",
        r"指示|命令|ルール",
        r"(?:この|本)(?:レポート|報告|回答|文章)",
        r"与え|付け|つけ|出し",
        r"満点|最高点|最高評価",
    ),
    (  # Korean
        r"무시하|무시해|잊으",
        r"이전|앞의|위의|지금까지",
        r"지시|명령|지침",
        r"이 (?:보고서|답변|글)",
        r"주세요|주십시오|부여|줘",
        r"만점|최고 점수|최고점",
    ),
    (  # Arabic
        r"تجاهل",
        r"السابق|أعلاه",
        r"التعليمات|الأوامر",
        r"هذا التقرير|هذه الإجابة",
        r"امنح|أعط|يستحق",
        r"الدرجة الكاملة|أعلى درجة|الدرجة القصوى|العلامة الكاملة",
    ),
    (  # Hindi
        r"अनदेखा|नज़रअंदाज",
        r"पिछल|पहले|उपरोक्त",
        r"निर्देश|नियम",
        r"इस रिपोर्ट|इस उत्तर",
        r"दें|दो|दीजिए",
        r"पूरे अंक|पूर्ण अंक|अधिकतम अंक",
    ),
    (  # Turkish
        r"yok say|görmezden gel",
        r"önceki|yukarıdaki",
        r"talimat|kural",
        r"bu (?:rapor|metn|yanıt)",
        r"\bver|hak ed",
        r"tam puan|en yüksek (?:puan|not)",
    ),
    (  # Vietnamese
        r"bỏ qua|phớt lờ",
        r"trước|ở trên",
        r"hướng dẫn|chỉ dẫn|lệnh",
        r"báo cáo này|câu trả lời này",
        r"\bcho\b|xứng đáng",
        r"điểm (?:tối đa|cao nhất)",
    ),
    (  # Indonesian
        r"abaikan|lupakan",
        r"sebelumnya|di atas",
        r"instruksi|perintah|aturan",
        r"laporan ini|jawaban ini",
        r"beri|layak",
        r"(?:nilai|skor) (?:maksimal|tertinggi|penuh)",
    ),
    (  # Thai
        r"ละเว้น|เพิกเฉย|ไม่ต้องสนใจ",
        r"ก่อนหน้า|ข้างต้น",
        r"คำสั่ง|คำแนะนำ",
        r"รายงานนี้",
        r"ให้",
        r"คะแนนเต็ม|คะแนนสูงสุด",
    ),
    (  # Swedish
        r"ignorera\b|glöm\b",
        r"tidigare|föregående|ovan",
        r"instruktion|regl|anvisning",
        r"denna rapport|den här rapporten",
        r"\bge\b|förtjän",
        r"(?:högsta|full|maximala?) (?:poäng|betyg)",
    ),
    (  # Greek
        r"αγνόησε|αγνοήστε|ξέχασε",
        r"προηγούμεν|παραπάνω",
        r"οδηγί|εντολ|κανόν",
        r"(?:στην|αυτή την) έκθεση",
        r"δώσε|δώστε|αξίζει",
        r"μέγιστη βαθμολογία|άριστα",
    ),
    (  # Hebrew
        r"התעלמ|התעלם",
        r"הקודמ|לעיל",
        r"הוראות|הנחיות",
        r"דוח הזה|דוח זה",
        r"תן|תנו|ראוי",
        r"ציון (?:ה)?(?:מרבי|מקסימלי|מלא)",
    ),
    (  # Persian
        r"نادیده بگیر",
        r"قبلی|بالا",
        r"دستور",
        r"این گزارش",
        r"بده|بدهید",
        r"نمره کامل|بالاترین نمره",
    ),
)
_NEAR = re.compile(
    rf"\b(?:{_JUDGE}s?|grad(?:e|es|ing)|scor(?:e|es|ing)|evaluat\w{{1,5}}|report|prompts?|rubrics?|criteria|criterion"
    r"|tasks?|context|chat|conversation|full (?:marks|credit)|from (?:the )?(?:system|users?|developers?)|output only"
    r"|respond with|you are)\b",
    re.IGNORECASE,
)
_ENGLISH = Screen((*_COMMANDS, *_ADDRESSES), re.IGNORECASE | re.MULTILINE)
# One row after the other, three parts each.
_PARTS = Screen(
    [unicodedata.normalize("NFKC", one) for at in (0, 3) for row in _OTHERS for one in row[at : at + 3]]
)
_SENTENCE = re.compile(r"[^.!?。！？؟।]{1,400}")
_CODE = re.compile(r"(?ms)^[ \t]{0,3}(?P<fence>```|~~~).*?^[ \t]{0,3}(?P=fence)[^\n]*$|`[^`\n]{1,400}`")


def orders_in(text: str) -> Iterator[str]:
    """The orders to a judge in `text`, of which nothing is normalised yet but invisible characters left out."""
    said = compatible(_CODE.sub(" ", text) if "`" in text or "~~~" in text else text)
    plain = _plain(said)
    yield from _english(said)
    yield from _english(_undisguised(said, plain))
    yield from _in_sentences(plain.casefold())


def _english(text: str) -> Iterator[str]:
    for place in _ENGLISH.possible(text):
        for found in _ENGLISH[place].finditer(text):
            is_order = place >= len(_COMMANDS) or _ASKED.search(
                text, max(found.start() - 20, 0), found.start()
            )
            if is_order and not _is_mention(text, found) and not _is_of_others(text, found):
                yield found.group()


def _is_of_others(text: str, found: re.Match[str]) -> bool:
    """Whether an order to forget names an object of its own, and nothing that a judge has to do with is near."""
    if found.re is not _ENGLISH[0] or found["own"] is None:
        return False
    return _NEAR.search(text, max(found.start() - 100, 0), found.end() + 200) is None


def _in_sentences(lowered: str) -> Iterator[str]:
    """Sentences of other languages in which all three parts of an order stand."""
    parts = frozenset(_PARTS.possible(lowered))
    found = (range(first, first + 3) for first in range(0, len(_PARTS), 3))
    rows = [[_PARTS[place] for place in row] for row in found if parts.issuperset(row)]
    if rows:
        for sentence in _SENTENCE.finditer(lowered):
            is_order = any(all(part.search(sentence.group()) for part in row) for row in rows)
            if is_order and not _is_mention(lowered, sentence):
                yield sentence.group()


_OPENS = "\"'“„«‘「『"
_CLOSES = re.compile(r"[\"'”“»’」』]")


def _is_mention(text: str, found: re.Match[str]) -> bool:
    """Whether what was found is quoted in a sentence, or in a block that one announces."""
    at = found.start() + len(found.group()) - len(found.group().lstrip(" \t\n.,:;(*-"))
    line = text.rfind("\n", max(at - 400, 0), at) + 1
    before = text[max(line, at - 200) : at + 1]
    if before.lstrip().startswith(">") and line > at - 200:
        return text[max(line - 200, 0) : line].rstrip(" \n>").endswith((":", "："))
    opened = max(map(before.rfind, _OPENS))
    if opened < 0 or not before[:opened].strip() or len(before) - opened > 3:
        return False
    return _CLOSES.search(text, at + 1, found.end() + 300) is not None


_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
_EMPHASIS = re.compile(r"[*_~]{1,6}")


def _plain(text: str) -> str:
    """What a reader of the rendered text reads, as far as it joins words."""
    text = _TAG.sub("", html.unescape(text)) if "<" in text or "&" in text else text

    def shown(run: re.Match[str]) -> str:
        beside = text[run.start() - 1 : run.start()], text[run.end() : run.end() + 1]
        return "" if beside[0].isalnum() or beside[1].isalnum() else run.group()

    return _EMPHASIS.sub(shown, text) if any(mark in text for mark in "*_~") else text


_ALIKE = str.maketrans(
    "аеорсухіјѕһԁԛԝвкмнт АВЕКМНОРСТУХІЈЅ αειουρτνκ",
    "aeopcyxijshdqwbkmht ABEKMHOPCTYXIJS aeiouptvk",
)
_ACCENTS = re.compile("[\u0300-\u036f]+")
_SPACED = re.compile(r"(?<!\w)\w(?:[ .\-_]\w){2,60}(?!\w)")
_FIGURES = re.compile(r"(?<![\w@$])(?=[a-zA-Z]{0,40}[\d@$])(?=[\d@$]{0,3}[a-zA-Z])[\w@$]{3,40}(?!\w)")
_HYPHENS = re.compile(r"(?<=[a-z])-(?=[a-z])")
_LEET = str.maketrans("013457@$", "oieastas")
_CODED = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{24,4000}={0,2}")


# What a line in disguise has: letters that look like others, figures beside letters, single letters, a run of base 64,
# hyphens in one word after another. The screen alone decides: a line more to be folded does no harm.
_DISGUISES = Screen(
    (
        "[\u00c0-\u017e\u0180-\u052f\u1e00-\u1fff]",  # without the long s, which is an s whatever the case
        r"[a-zA-Z][0-9@$]|[0-9@$][a-zA-Z]",
        r"[ .\-_]\w[ .\-_]\w(?:\W|$)",
        r"[A-Za-z0-9+/]{24}",
    )
)
_HYPHENATED = re.compile(r"-(?<=[a-z]-)[a-z][^\n]{0,40}[a-z]-[a-z][^\n]{0,40}[a-z]-[a-z]")
_ADDRESS = re.compile(r"https?://[^\s)\]>\"]{1,2000}")


def _undisguised(said: str, plain: str) -> str:
    """The lines of `plain` that are not as in `said`, or not without their disguise, addresses aside."""
    known = frozenset(said.splitlines())
    without = _ADDRESS.sub(" ", plain) if "://" in plain else plain  # an address ends with its line
    shown, disguised = [], []
    for line, bare in zip(plain.splitlines(), without.splitlines(), strict=True):
        if _DISGUISES.possible(bare) or (bare.count("-") > 2 and _HYPHENATED.search(bare)):
            disguised.append(bare)
        elif line not in known:
            shown.append(line)
    folded = _folded("\n".join(disguised)).splitlines()
    return "\n".join((*shown, *(line for line in folded if line not in known)))


def _folded(text: str) -> str:
    """`text` without its disguises: letters of other scripts, accents, figures for letters, gaps, base 64."""
    if not text.isascii():
        text = _ACCENTS.sub("", compatible(text.translate(_ALIKE), "NFD"))
    text = _SPACED.sub(lambda found: re.sub(r"[ .\-_]", "", found.group()), text)
    text = _HYPHENS.sub("", text)
    text = _FIGURES.sub(lambda found: found.group().translate(_LEET), text)
    decoded = [said for found in _CODED.finditer(text) if (said := _decoded(found.group()))]
    return "\n".join((text, *decoded))


def _decoded(said: str) -> str:
    try:
        found = base64.b64decode(said + "=" * (-len(said) % 4), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return found if " " in found and found.isprintable() else ""
