"""Whether a page that says hardly anything stands in another's place, by how it is made, whatever its words.

Few pages with content have so little text and no figure in it. Of those, marks decide, each worth points: what
templates call their elements, a status code or a host for a title, links that lead to the start page alone or nowhere,
an order not to index the page, and words for what the web is made of. Where there is what content is made of (articles,
tables, quotations), only a template's name decides; a description and links that lead on weigh against it.
"""

import re
from typing import Literal

from selectolax.lexbor import LexborHTMLParser, LexborNode

from adjudge.fetchers.notices import Notice, NoticeState, has_figures, parts

# Characters: of the text of a page, and of what it shows outside links and forms.
_MOST, _MOST_SHOWN = 800, 400
_ENOUGH = 3
_SURE = 3
_MOST_NAMED = 1_000


def _template(state: NoticeState, names: str) -> tuple[NoticeState, re.Pattern[str]]:
    return state, re.compile(rf"(?:^|[\s_-])(?:{names})(?![a-z0-9])", re.I | re.X)


# What templates call notices, in class names and ids, whatever the language of the page.
_TEMPLATES = (
    _template(
        "missing",
        r"""(?:error|err|page|path|template|status|http|view|layout|is|p|s) [_-]{0,2} 4(?:04|10)
        | 4(?:04|10) [_-]? (?:error|page|wrap\w{0,9}|content|container) | (?:page|error|post)? [_-]? not [_-]? found
        | not [_-]? found [_-]? page | cms [_-] no [_-]? route | domain [_-] (?:for [_-] sale|parking|parked)
        | parked [_-] (?:domain|page)""",
    ),
    _template(
        "failed",
        r"(?:error|page|status|http) [_-]{0,2} 5\d\d | maintenance (?:[_-](?:mode|page))? | server [_-] error",
    ),
    _template(
        "wall",
        r"""(?:error|page|status|http) [_-]{0,2} 40[13] | access [_-]? denied | forbidden | no [_-]? captcha
        | challenge [_-] (?:form|running|container|stage|page|wrapper) | login [_-] (?:page|required)
        | (?:cookie|consent|privacy|login|auth|ad|adblock|age|geo|reg|registration) [_-]? (?:wall|gate)
        | waiting [_-]? room | age [_-] verif\w{1,9} | geo [_-]? block\w{0,9}""",
    ),
    _template(
        "teaser",
        r"pay [_-]? wall | (?:subscri(?:be|ption|ber)|premium) [_-] (?:wall|gate) | meter [_-] wall",
    ),
    _template(
        "empty",
        r"""error [_-]? page | page [_-]? error | (?:old|outdated|unsupported) [_-]? browser
        | browser [_-]? (?:upgrade|warning|outdated)""",
    ),
)
# Behind a round number, things are counted.
_CODE = re.compile(
    r"(?:[^\W\d]{1,40}[ :]{0,3})?(40[1-4]|410|429|451|50[234]|500(?! ))(?:[ :–-]{1,3}[^\W\d]{1,40}){0,3}"
)
_OF_CODES: dict[str, NoticeState] = {"404": "missing", "410": "missing"}
_SUBSTANCE = (
    "article, blockquote, table, pre, code, dl, figure, time, video, audio, textarea, [itemprop], "
    'meta[property="og:type"][content=article], meta[name^=citation_]'
)
_DESCRIBED = 'meta[name=description i][content], meta[property="og:description" i][content]'
# What the web is made of, as those name it who speak of it to a reader: a page, a link, a browser, an account. The
# last ones are of scripts that set no spaces between words, or write articles and cases before them.
_WEB = re.compile(
    r"""\b(?:(?:web\ ?)?(?:pages?|sites?) | links? | urls? | browsers? | servers? | cookie\w* | javascript | scripts?
    | accounts? | passwords? | subscri\w+ | dom[aeä]+in\w* | dom[ií]n[iy]\w* | web | ip | (?:ro)?bots? | captcha | cache
    | (?:sign|log)(?:ged)?[ -]?in | network | administrator | webmaster | ad\ ?block\w* | reload | redirect\w*
    | (?:un)?available | removed | deleted | expired | blocked | requests? | host(?:ing)?
    | articles? | stories | content | video | profile | listing | privacy | region | maintenance
    | (?:web|start)?seite | artikel\w* | inhalte? | beitrag | verkn\w+ | adresse | konto | passwort | kennwort | netz\w*
    | gelöscht | entfernt | abgelaufen | inserat | anfragen | verwijderd | borttag\w+ | fjernet | slettet | poistettu
    | nettverk\w* | nätverk\w* | abonn\w+ | anmeld\w* | zustimm\w+ | einwillig\w+ | skripte? | wartung\w* | pagina
    | bericht | wachtwoord | toestemming | inloggen | (?:start)?sidan | siden | forsiden | innehåll\w* | indhold\w*
    | innhold\w* | webbläsare\w* | nettleser\w* | adressen | lösenord | kakor | adgangskode | passord | prenumer\w+
    | saken | artikkel\w* | samtyk\w+ | informasjonskapsler
    | liens? | contenus? | navigateur | compte | mot\ de\ passe | traceurs | accord | serveur | página | enlace
    | contenido | dirección | navegador | ventana | janela | cuenta | contraseña | noticia | notícia | vídeo | país
    | supprim\w+ | retir[éeaào]\w* | annonce | requêtes | eliminad\w+ | borrad\w+ | removid\w+ | anuncio | rimoss\w+
    | mantenimiento | conteúdo | endereço | conta | senha | assin\w+ | contenuto | indirizzo | credenziali | abbon\w+
    | accedi | articolo | artículo | artigo | articol\w* | conținut\w* | parola | manutenzione | manutenção
    | stron\w+ | artykuł\w* | adres\w* | treś\w+ | przeglądark\w+ | konta | hasł\w+ | prywatno\w+ | automat\w*
    | usunię\w+ | odstraněn\w+ | smaz\w+ | удал[её]н\w* | видален\w* | запрос\w*
    | ciastecz\w+ | stránk\w+ | článe?k\w* | obsah\w* | prohlížeč\w* | heslo | stroj | sušenk\w+ | vijest
    | страниц\w+ | сторінк\w+ | статт\w+ | стать\w+ | материал\w* | матеріал\w* | ссылк\w+ | посилан\w+ | адрес\w*
    | браузер\w* | сайт\w* | парол\w+ | аккаунт\w* | кабинет\w* | приложени\w+ | домен\w* | куки
    | sivu\w* | artikkeli\w* | sisältö\w* | selaim\w+ | salasana\w* | eväst\w+ | oldal\w* | cikk\w* | tartalom\w*
    | böngésző\w* | jelszó\w* | σελίδα\w* | άρθρο\w* | σύνδεσμο\w* | περιηγητ\w+ | sayfa\w* | haber\w* | içeri[kğ]\w*
    | tarayıcı\w* | bağlantı\w* | şifre\w* | üye\w* | çerez\w* | trang | bài\ viết | liên\ kết | trình\ duyệt
    | silin\w+ | kaldır\w+ | törölt\w* | gỡ\ bỏ | dihapus
    | tài\ khoản | mật\ khẩu | halaman | konten | tautan | peramban | akun | kata\ sandi)\b
    | صفح | المقال | المحتوى | الرابط | متصفح | كلمة\ المرور | برنامج | لینک | مرورگر | חשבון | הדף | העמוד
    | הכתבה | התוכן | הדפדפן | סיסמה | लेख | पृष्ठ | पेज | सामग्री | ब्राउज़र | บทความ | หน้า | เบราว์เซอร์ | บัญชี
    | 页面 | 頁面 | 网页 | 網頁 | 文章 | 内容 | 內容 | 链接 | 連結 | 浏览器 | 瀏覽器 | 服务器 | 访问 | 账号 | 帳號
    | 密码 | 密碼 | 验证 | 驗證 | 登录 | 登入 | 新聞 | 新闻 | 主题 | 主題 | 帖子 | 下架
    | 下线 | 删除 | 刪除 | 削除 | 삭제
    | ページ | 記事 | リンク | ブラウザ | サーバ | アクセス | 会員 | パスワード | アカウント | 掲載 | クッキー
    | 페이지 | 기사 | 링크 | 브라우저 | 서버 | 접속 | 계정 | 비밀번호 | 자동화 | 쿠키""",
    re.I | re.X,
)
_AROUND = "nav a, header a, footer a"
_NO_LINK = re.compile(r"#|javascript:", re.I)
_HOME = re.compile(r"(?:(?:https?:)?//[^/?#]{1,300})?/?(?:index\.\w{1,5})?|/[a-z]{2}(?:-[a-z]{2})?/?", re.I)
_HOST = re.compile(r"(?:[\w-]{1,63}\.){1,9}[a-z]{2,20}", re.I)
_RELOADS = re.compile(r"location\.reload|document\.cookie\s{0,9}=|history\.go\(0\)")


def stand_in(title: str, heading: str, text: str, shown: str, source: str) -> Notice | None:
    """The notice that a page is by its make; None if it is none. `shown` is its text outside links and forms."""
    if len(text) > _MOST or len(shown) > _MOST_SHOWN or has_figures(shown) or not shown:
        return None
    page = LexborHTMLParser(source)
    state, marks = _named(page)
    if not marks and page.css_first(_SUBSTANCE) is not None:
        return None
    points, leads = _SURE * len(marks), _leads(page)
    titles = [*parts(title), *parts(heading)]
    code = next((match[1] for each in titles if (match := _CODE.fullmatch(each))), "")
    if code and leads != "on":
        state = state or _OF_CODES.get(code, "failed" if code[0] == "5" else "wall")
        points, marks = points + _SURE, [*marks, f"the status {code} for a title"]
    words = sorted({match[0].lower() for match in _WEB.finditer(shown)})
    found = (
        (2, "no link but to the start page", leads == "home"),
        (1, "no link in it", leads == "nowhere"),
        (1, "a host for a title", any(map(_HOST.fullmatch, titles))),
        (1, "not to be indexed", any(map(_is_unindexed, page.css("meta[name=robots i]")))),
        (1, "a script that loads it anew", any(_RELOADS.search(one.text()) for one in page.css("script"))),
        (1, "a wait", shown.endswith(("…", "..."))),
        (1, "a script", page.css_first("a[href]") is None and page.css_first("script") is not None),
        (min(2, len(words)), f"words of the web ({', '.join(words)})", bool(words)),
    )
    points += sum(worth for worth, _, there in found if there)
    points -= (leads == "on") + (page.css_first(_DESCRIBED) is not None)
    if points < _ENOUGH:
        return None
    return Notice(
        state or "empty",
        f"hardly any text, and {', '.join([*marks, *(what for _, what, there in found if there)])}",
    )


def _named(page: LexborHTMLParser) -> tuple[NoticeState | None, list[str]]:
    """What the page is by its template's name for it, and that name."""
    for node in page.css("[class], [id]")[:_MOST_NAMED]:
        names = f"{node.attributes.get('class') or ''} {node.attributes.get('id') or ''}"[:500]
        for state, pattern in _TEMPLATES:
            if found := pattern.search(names):
                return state, [f"an element called {found[0].strip()[:40]}"]
    return None, []


def _is_unindexed(meta: LexborNode) -> bool:
    return "noindex" in (meta.attributes.get("content") or "").lower()


def _leads(page: LexborHTMLParser) -> Literal["on", "home", "nowhere"]:
    """Where the links outside navigation lead: "on" if any does so, "home" if all lead to the start page."""
    around = {link.mem_id for link in page.css(_AROUND)}
    targets = [link.attributes.get("href") or "" for link in page.css("a[href]") if link.mem_id not in around]
    targets = [target for each in targets if (target := each.strip()) and not _NO_LINK.match(target)]
    if not targets:
        return "nowhere"
    return "home" if all(map(_HOME.fullmatch, targets)) else "on"
