"""How surely a title names a list of references: what breaks ties where the structure of a report leaves any."""

import re
from functools import lru_cache

MAX_TITLE = 120
SURE, LIKELY, PERHAPS = 3, 2, 1

_NUMBERING = re.compile(
    r"\s*(?:[(（]?[\dIVXivx]{1,5}[)）.、．:： ]{1,3}|[(（]?[一二三四五六七八九十]{1,3}[)）、.．:： ]{1,3}"
    r"|第[一二三四五六七八九十\d]{1,3}[章节部分]{1,2}\s?)"
)
_ASIDE = re.compile(r"[(（][^()（）]{0,60}[)）]")
_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a all and authorities cited citations consulted external footnotes full further key links list literature
        main materials notes of online other primary quoted reading reference references resources secondary section
        selected source sources the used works endnotes bibliography citation urls url web
        """,
    )
)
# The names of such lists in other languages, in lower case, as the first word of a title.
_ABROAD = frozenset(
    re.findall(
        r"\S+",
        """
        quellen quelle quellenverzeichnis quellenangaben literatur literaturverzeichnis literaturangaben referenzen
        einzelnachweise nachweise belege fußnoten endnoten weblinks verweise
        références référence bibliographie webographie sitographie
        fuentes fuente referencias referencia bibliografía notas
        fontes fonte referências referência bibliografia fonti riferimenti sitografia
        bronnen bronvermelding literatuur referenties voetnoten
        källor källa referenser källförteckning kilder kilde referanser referencer litteratur
        lähteet viitteet heimildir
        źródła źródło przypisy literatura zdroje prameny odkazy források hivatkozások irodalom
        viri izvori surse referințe
        источники источник литература библиография ссылки примечания сноски джерела література посилання
        източници литература πηγές βιβλιογραφία αναφορές
        kaynaklar kaynak kaynakça referanslar المصادر المراجع المصدر מקור מקורות ביבליוגרפיה منابع مراجع
        स्रोत संदर्भ सन्दर्भ সূত্র तथ्यसूत्र อ้างอิง แหล่งอ้างอิง เอกสารอ้างอิง แหล่งที่มา
        sumber referensi rujukan pustaka
        출처 참고문헌 참고 자료출처 각주 인용 出典 参考資料 引用元 脚注 参照
        """,
    )
)
_ABROAD_PHRASES = (
    "daftar pustaka",
    "nguồn",
    "tài liệu tham khảo",
    "spis źródeł",
    "список ",
    "lista de ",
    "liste des ",
    "elenco ",
)
_STRONG = frozenset(["references", "bibliography", "citations", "footnotes", "endnotes"])
_WEAK = frozenset(
    ["reference", "source", "sources", "cited", "notes", "citation", "literature", "reading", "links", "urls"]
)
_OTHER_LETTER = re.compile(r"[^\W\d_a-zA-Z]")
_MAX_WORDS = 6  # of a title that names a list among other words: "Appendix A: Data sources"
_CHINESE = re.compile(
    r"[主要关關键鍵核心部分全附录錄注註脚腳尾参參考引用资資料信息訊数數据據文献獻来來源出处處链鏈连連接結网網址列表目录"
    r"与與和及说說明释釋的著作书書籍相延伸阅閱读讀、：:\s]{2,14}"
)
_CHINESE_STRONG = re.compile("参考|參考|引用|引文|文献|文獻|脚注|腳註|尾注|尾註")
_CHINESE_WEAK = re.compile("来源|來源|出处|出處|注释|註釋|附注|附註|链接|鏈接|連結")


@lru_cache(maxsize=1_000)
def strength(title: str) -> int:
    """SURE or LIKELY if `title` names a reference list, PERHAPS if it also says other things, 0 if it does not."""
    if len(title) > MAX_TITLE:
        return 0
    title = _ASIDE.sub("", title).strip(" \t*_#:：.。")
    numbering = _NUMBERING.match(title)
    title = title[numbering.end() if numbering else 0 :].strip(" *_:：")
    lower = title.casefold()
    first = lower.split(" ", 1)[0].rstrip(":：")
    if first in _ABROAD or lower.startswith(_ABROAD_PHRASES):
        return LIKELY if len(lower.split()) <= _MAX_WORDS else PERHAPS
    words = re.findall(r"[a-z]+", title.lower())
    if words:
        if _STRONG.isdisjoint(words) and _WEAK.isdisjoint(words):
            return 0
        if not _WORDS.issuperset(words) or _OTHER_LETTER.search(title):
            return PERHAPS if len(words) <= _MAX_WORDS else 0
        return LIKELY if _STRONG.isdisjoint(words) else SURE
    strong, weak = _CHINESE_STRONG.search(title), _CHINESE_WEAK.search(title)
    if not _CHINESE.fullmatch(title):
        return PERHAPS if strong or weak else 0
    return SURE if strong else LIKELY if weak else 0
