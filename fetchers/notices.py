"""What servers say to a reader in a page's place, in the languages of the web: that the page is not there, that one
must prove to be a person, log in, agree or pay, or that a server or a browser is not up to it.

A phrase alone decides nothing, since pages are written about such notices, are named like them, and quote them. A
notice says so in its title or heading and in a sentence below, or in two sentences from its first one on, and it says
hardly anything else. Where a phrase is all there is, a figure tells a page from a notice.
"""

import re
from functools import cached_property
from typing import Literal, NamedTuple

NoticeState = Literal["wall", "missing", "teaser", "empty", "failed"]


class Notice(NamedTuple):
    """What a notice makes of a page, and by which words."""

    state: NoticeState
    sign: str


class _Kind:
    """A kind of notice. Its patterns are compiled at the first page that is short enough to be one."""

    def __init__(self, state: NoticeState, what: str, names: str, *sentences: str) -> None:
        self.state = state
        self.what = what
        self._names = names
        self._sentences = sentences

    @cached_property
    def names(self) -> re.Pattern[str]:
        """What its title or heading may be, whole."""
        return re.compile(self._names, re.I)

    @cached_property
    def sentences(self) -> re.Pattern[str]:
        """What stands in a sentence that says so."""
        return re.compile("|".join(self._sentences), re.I)


_PAGE = r"(?:page|url|article|document|file|content|video|link|address|story|item|post|topic|thread|site|resource)"
_MISSING = _Kind(
    "missing",
    "the page says itself that it is not there",
    r"(?:(?:http )?(?:error|fehler|erreur|errore|ошибка|помилка|błąd|hata|fel|fejl|feil|virhe"
    r"|chyba|lỗi"
    r"|エラー|错误)[ :]*)?"
    r"(?:40[4]|410)(?: error| not found| gone| page)*(?: \(?not found\)?)?(?:!!1)?"
    r"|.{1,60} is for sale"
    r"|(?:\w+ )?not found(?: \(?404\)?)?"
    r"|gone|oops|oups|ops|account suspended|nothing (?:here|found)",
    # English
    r"seite gibt es (?:leider )?nicht|(?:ressource|contenu) introuvable|такой страницы нет"
    r"|this job is (?:no longer|not)"
    r"|something went wrong|no record with this|doi cannot be found|(?:page"
    r"|it) (?:seems to have )?gone missing|page isn't here|listing has expired"
    r"|no longer open|does not have an article|video is private|account has been suspended"
    r"|web server is successfully installed|no encontramos lo que|(?:内容|页面|文章)(?:已被|找不到)",
    rf"\b{_PAGE} (?:that )?(?:you(?:'re| are| were|'ve| have)? )?(?:just )?"
    r"(?:request|look|ask|search|try|seek|want|enter|follow)",
    rf"\b{_PAGE} .{{0,30}}(?:not found|could not be found|can(?:no|')t be found|couldn't be found"
    r"|does(?: no|n')t exist)",
    rf"\b(?:this|that|the|your) {_PAGE} (?:is|was|has been|are|have been|may have been|might have been)"
    r".{0,9} (?:no longer|not|moved|removed|deleted|unavailable)",
    rf"\b{_PAGE} (?:is(?: not|n't)|no longer) (?:available|exists?)",
    rf"(?:can(?:'t|not)|couldn't|could not|unable to) (?:seem to )?"
    rf"find (?:the |that |this |your |any )?(?:{_PAGE}\b|what you)",
    r"requested (?:url|page|resource|document|content) .{0,40}(?:not|no longer)",
    r"nothing (?:was )?(?:found )?(?:at|on) this (?:location|address|url|page)"
    r"|nothing is at this address",
    r"does not contain the requested file|domain .{0,40}for sale|buy this domain",
    # German, Dutch, Scandinavian
    r"\b(?:seite|artikel|dokument|inhalt|beitrag)\b.{0,50}(?:nicht (?:\(?mehr\)? ?)?(?:gefunden"
    r"|finden"
    r"|vorhanden|verfügbar|existier)"
    r"|gelöscht|verschoben|existiert)",
    r"\bpagina\b.{0,30}(?:niet gevonden|bestaat niet|niet (?:meer )?beschikbaar|verplaatst)",
    r"\b(?:sidan|siden)\b.{0,30}(?:hittades inte|inte hitta|finns inte|ikke (?:be )?fun"
    r"|ikke blev fundet"
    r"|blev ikke|finnes ikke|findes ikke)"
    r"|fant ikke siden",
    # Romance
    r"\b(?:page|article|contenu)\b.{0,40}(?:introuvable|n['’]existe|non trouvée?"
    r"|n['’]a pas été trouvé"
    r"|n['’]est (?:plus|pas) disponible)",
    r"\b(?:página|artículo|contenido)\b.{0,30}(?:no (?:se (?:ha )?)?(?:encontr|exist"
    r"|está disponible))"
    r"|no (?:se ha |hemos )encontrado la página",
    r"\b(?:página|artigo|conteúdo)\b.{0,30}(?:não (?:foi )?(?:encontrad|exist|está disponível))",
    r"\bpagina\b.{0,30}(?:non (?:è stata )?(?:trovata|esiste|disponibile))"
    r"|\bpagina nu (?:a fost găsită"
    r"|există)",
    # Slavic, Greek, Finnish, Hungarian, Turkish
    r"\bstron\w{1,3}\b.{0,30}nie (?:została )?(?:znaleziono|znaleziona|istnieje)"
    r"|nie znaleziono strony",
    r"\bstránk\w\b.{0,30}(?:nenalezena|nebyla nalezena|neexistuje|nenájdená|nebola nájdená)",
    r"страниц\w.{0,30}не (?:найден|существует)|сторінк\w.{0,30}не (?:знайден|існує)"
    r"|страница(?:та)? не е намерена",
    r"σελίδα.{0,30}δεν (?:βρέθηκε|υπάρχει)|sivua ei (?:löyty|ole)"
    r"|\boldal\b.{0,20}nem (?:található|létezik)",
    r"sayfa\w{0,3} (?:bulunamadı|mevcut değil)",
    # Semitic, Asian
    r"الصفحة.{0,30}(?:غير موجودة|لم يتم العثور)|(?:הדף|העמוד).{0,20}לא נמצא"
    r"|صفحه.{0,20}(?:یافت نشد|پیدا نشد)",
    r"không tìm thấy trang|trang .{0,30}không tồn tại|halaman.{0,30}tidak (?:di)?(?:temukan|ada"
    r"|tersedia)"
    r"|ไม่พบหน้า",
    r"(?:页面|頁面|网页|網頁|文章|内容|內容).{0,12}(?:不存在|未找到|找不到|已(?:经|被|經)?(?:删除|移除|刪除))|找不到.{0,6}(?:页面|頁面|网页"
    r"|網頁)",
    r"(?:ページ|記事).{0,14}(?:見つかりません|存在しません|ありません|削除)|페이지.{0,4}(?:찾을 수 없|존재하지 않)",
)
_CHECK = _Kind(
    "wall",
    "a bot check",
    r"client challenge|are you (?:a )?(?:human|robot)|robot or human|bitte warten"
    r"|einen augenblick(?: bitte)?"
    r"|(?:40[13] ?)?(?:forbidden|unauthorized)|too many requests|rate limit exceeded"
    r"|restricted access"
    r"|just a moment|one moment,? please|please wait|un instant|un momento|nur einen moment"
    r"|einen moment"
    r"|один момент|请稍候"
    r"|checking your browser.{0,60}|(?:robot|captcha)(?: check| page)?|captcha|ddos-guard"
    r"|one more step"
    r"|security check|access check"
    r"|(?:human|bot|browser|security|captcha) (?:verification|check|challenge)|access verification"
    r"|pardon our interruption|waiting room.{0,30}"
    r"|queue-it|blocked|request rejected|attention required"
    r"|access (?:to this page has been )?denied"
    r"|access restricted"
    r"|sicherheits(?:über)?prüfung|vérification de sécurité|verificación de seguridad|accès refusé"
    r"|zugriff verweigert"
    r"|acceso denegado|accesso negato|acesso negado|доступ (?:ограничен|запрещ[её]н).{0,40}|安全验证"
    r"|人机验证|验证码"
    r"|アクセス確認|보안 확인"
    r"|cookies? ?(?:absent|required|disabled)|error - cookies turned off"
    r"|unavailable due to legal reasons"
    r"|error 10\d\d",
    r"(?:confirm|verify|verifying|prove|sure|check(?:ing)?|if)\b.{0,20}\b(?:you(?:'re| are)?"
    r"|your) .{0,9}(?:human|(?:ro)?bot)"
    r"|are you a (?:ro)?bot|you(?:'re| are) (?:not a (?:ro)?bot|a real person|a human)"
    r"|think you (?:were"
    r"|are) a (?:ro)?bot",
    r"\bnot a (?:ro)?bot\b|challenge page|past this challenge|unusual (?:traffic|activity|requests)"
    r"|suspicious activity|using automation tools|automated \(?bot",
    r"complet\w+ the (?:security |captcha )?(?:check|challenge|captcha)|press (?:&|and) hold"
    r"|why do i have to complete a captcha",
    r"request (?:blocked|could not be satisfied)|prüfen ihre verbindung|non essere un robot"
    r"|(?:checking|verifying) your browser|browser wird überprüft|проверк. .{0,12}браузера"
    r"|что вы человек|是否是真人"
    r"|接続が安全|사람인지|que eres una persona|exceeded the rate limit|too many requests|verify your age"
    r"|18 or older"
    r"|banned your ip|disable any ad blockers|keine berechtigung|security of your connection"
    r"|browser will redirect|(?:made us think"
    r"|cookies and javascript are enabled)",
    r"enable (?:javascript and )?cookies|(?<!when )cookies (?:are disabled|must be (?:enabled"
    r"|turned on))"
    r"|does not accept cookies"
    r"|requires cookies|does not support cookies",
    r"you(?:'ve| have) been (?:blocked|denied)|why have i been blocked|you are unable to access"
    r"|request (?:has been|was) (?:blocked|denied)"
    r"|your (?:access|ip|ip address) .{0,30}(?:blocked|limited|denied|banned)|blocked in error"
    r"|blocked by mistake"
    r"|protect itself from online attacks|access .{0,24}(?:temporarily (?:restricted|limited)"
    r"|cannot be granted)|because we believe you are",
    r"url was rejected|your support id is|permission to access|incapsula incident"
    r"|cloudflare ray id",
    r"you are now in (?:line|the queue)|estimated wait time|users in line ahead|virtual queue"
    r"|page will automatically refresh",
    # German, Romance
    r"kein roboter|(?:sie|du) (?:ein )?mensch|ungewöhnliche\w? (?:daten|aktivität|zugriff|anfragen)"
    r"|adresse wurde (?:gesperrt|blockiert)",
    r"pas un robot|êtes (?:bien )?(?:un )?humain|trafic inhabituel|activité inhabituelle"
    r"|adresse ip .{0,20}bloquée",
    r"eres (?:un )?humano|(?:eres|soy) un robot|tráfico inusual|non (?:sei|sono) un robot"
    r"|traffico insolito|não (?:é|sou) um robô"
    r"|você é humano|tráfego incomum",
    # Russian, Asian
    r"(?:не|вы) робот|похожи на автоматические|(?:решите|введите) капчу|доступ .{0,20}(?:ограничен"
    r"|заблокирован)",
    r"完成.{0,6}验证|请输入验证码|访问(?:过于|太)?频繁|拖动到|请按住滑块|异常(?:流量|访问)"
    r"|環境異常|环境异常",
    r"ロボットでは(?:ない|ありません)|人間であること|通常と異なる(?:トラフィック|アクセス)"
    r"|로봇이 아닙|비정상적인 (?:접근|접속|활동)",
)
_LOGIN = _Kind(
    "wall",
    "a login",
    r"(?:please )?(?:log|sign)[ -]?in(?: ?to .{0,40})?|(?:.{0,20}: )?sign-?in|login(?: required"
    r"| page)?"
    r"|(?:log|sign) in required"
    r"|sign up|join .{0,20}|anmeld(?:en|ung)(?: erforderlich)?|einloggen|se connecter|connexion"
    r"|iniciar sesión|acceder|accedi|entrar"
    r"|inloggen|logga in|zaloguj(?: się)?|logowanie|вход(?: на сайт)?|авторизация|войти|登录|登入"
    r"|ログイン|로그인"
    r"|restricted|members only",
    r"(?:must|need to|have to|required to) (?:be )?(?:logged|signed|log|sign)[ -]?in"
    r"|need an account to|session has expired"
    r"|please (?:log|sign)[ -]?in\b"
    r"|(?:log|sign)[ -]?in (?:or (?:register|sign up|create an account) )?to (?:continue|view|see"
    r"|read"
    r"|access|your .{0,20}account)",
    r"to continue to (?:docs|drive|gmail|google)|already on linkedin|(?:only|not) (?:available"
    r"|visible) to (?:registered|logged)",
    r"nur für (?:angemeldete|registrierte)|bitte (?:melden sie sich|loggen|einloggen|anmelden)"
    r"|um fortzufahren.{0,20}anmelden",
    r"identifiez-vous|connectez-vous|(?:vous devez|veuillez) (?:être connecté|vous connecter)"
    r"|inicia(?:r)? sesión para"
    r"|effettua l['’]accesso|faça login",
    r"(?:войдите|авторизуйтесь|необходимо войти)|请(?:先)?登录|登录后|ログイン(?:してください|が必要)"
    r"|로그인(?:이 필요|하세요|해 주세요)",
)
# Those whom a site hands its readers' data to, and how many they are.
_COUNTED = (
    r"\d[\d.,]{0,9} (?:\w{1,20} )?(?:partner|partenaires|socios|parceiros|terze parti|third parties"
    r"|vendor|партн)"
)
_CONSENT = _Kind(
    "wall",
    "a request for consent",
    r"bevor sie (?:fortfahren|weitergehen)|before you continue(?: to .{0,30})?"
    r"|avant d['’](?:accéder à"
    r"|aller sur) .{0,30}"
    r"|antes de ir a .{0,30}|prima di continuare.{0,30}|voordat je verdergaat.{0,30}|(?:\w{1,20} ){0,3}privacy gate"
    r"|cookie-?wall"
    r"|(?:your|ihre|deine|votre|su|tu|la tua|a sua|jouw|je|uw|din|twoja) (?:privacy|privat\w{1,9}|vie privée"
    r"|privacidade?|datenschutz|integritet|prywatność)\b.{0,30}",
    rf"\b(?:our|unsere\w?|nos|nuestros|nossos|nostri|noi e|onze|våra|vores|naszych|наши\w{{0,2}}) {_COUNTED}",
    r"(?:withdraw|revoke) .{0,20}consent|(?:retirer|retirar|revocare?|revogar|ritirare) .{0,60}conse\w{2,9}"
    r"|hiermee inste?m|(?:accept|read on with|read without) (?:personali[sz]ed )?(?:advertising|ads)\b"
    r"|(?:nutzung|weiter) mit werbung|werbung (?:zu)?(?:zu)?(?:stimmen|akzeptieren)"
    r"|(?:avec|sans) publicités? personnalisée|(?:con|sin) publicidad personalizada",
    r"mit werbung (?:weiterlesen|oder|und tracking|lesen)|im pur-abo|ohne werbetracking"
    r"|sie haben die wahl",
    r"continuer sans accepter|accepter et fermer|votre vie privée est importante"
    r"|nous utilisons des cookies|tout (?:refuser|accepter)",
    r"verwendung von cookies zu|(?:ihre|deine) (?:einwilligung|zustimmung)|wir und unsere (?:partner|dienste)"
    r"|speichern wir und unsere|alle (?:akzeptieren|ablehnen)"
    r"|we value your privacy"
    r"|we and our (?:\d+ )?partners|nos partenaires et nous|utilizamos cookies"
    r"|wij gebruiken cookies"
    r"|geef dan toestemming",
)
_PAID = _Kind(
    "teaser",
    "what it sells stands in its place",
    r"subscribe to (?:read|unlock|continue).{0,30}|subscribers? only|members? only"
    r"|subscription required"
    r"|purchase access|get access|buy article",
    r"(?:rest of (?:this|the)|full access to this) (?:article|story)|purchase options"
    r"|subscribe to (?:unlock|continue|keep) |to continue reading|continue reading (?:with|for) "
    r"|full range of subscriptions"
    r"|(?:for|to) (?:our )?(?:paying |paid )?(?:subscribers|members) only|(?:digital"
    r"|unlimited) access to"
    r"|already a subscriber"
    r"|(?:story|article|content) (?:is )?(?:available|reserved|exclusively) (?:only )?(?:to"
    r"|for) .{0,20}(?:members|subscribers)"
    r"|create an account to read|start your (?:free )?trial|choose your (?:plan|subscription)"
    r"|per (?:month|year)\b.{0,20}cancel",
    r"nur für abonnenten|weiterlesen mit|jetzt (?:abonnieren|weiterlesen)|(?:nur"
    r"|exklusiv) für abonnenten|réservé (?:à"
    r"|aux) (?:nos )?abonnés"
    r"|(?:solo|exclusivo) para suscriptores|riservato agli abbonati|会员专享|有料会員限定|会員限定",
)
_SCRIPTS = _Kind(
    "empty",
    "its text needs a browser",
    r"(?:please )?enable javascript|javascript (?:is )?(?:required|disabled|not available)|loading"
    r"|unsupported browser",
    r"javascript.{0,60}(?:not available|requir|enabl|disabl|need|activ|turn|support|work"
    r"|necessary)|(?:requir|enabl"
    r"|need|activat|turn on|without)\w*.{0,30}javascript"
    r"|javascript (?:aktivieren|activé|habilitado)|(?:outdated|unsupported|old) browser"
    r"|upgrade your browser|javascriptを有効|启用 ?javascript",
    r"^loading\b|please stand by while|wird geladen|chargement en cours|cargando|загрузка"
    r"|加载中|読み込み中|불러오는 중",
    r"browser.{0,40}(?:(?:not|no longer|n't|isn’t) (?:be )?supported|out of date|outdated|too old)"
    r"|(?:use|switch to|install|try) .{0,20}(?:modern|current|newer|supported|latest|different)"
    r".{0,12}(?:browser|version)",
    r"browser.{0,40}(?:veraltet|nicht (?:mehr )?unterstützt|verouderd|niet (?:meer )?ondersteund"
    r"|obsoleto|non (?:è )?(?:più )?(?:supportato|aggiornato))"
    r"|(?:aktuelle|neuere|moderne|andere)\w? (?:version|browser)|(?:recente|andere|moderne) browser"
    r"|versione recente|aggiorna\w* il .{0,12}browser",
    r"navigateur.{0,40}(?:obsolète|trop ancien|pas à jour|(?:pas|plus) (?:supporté|pris en charge|compatible))"
    r"|(?:mett(?:re|ez) à jour|utilise[rz]) .{0,20}navigateur"
    r"|navegador.{0,40}(?:obsoleto|antiguo|desa[ct]?tualizado|(?:no|não) (?:es|é|está) (?:compat|soport|suport|actual))"
    r"|a[ct]?tuali[cz]\w+ .{0,12}navegador",
    r"przeglądark\w{1,3}.{0,40}(?:nieaktualn|przestarzał|nie jest (?:obsługiwan|wspieran))"
    r"|браузер\w{0,2}.{0,40}(?:устарел|не поддерживается)|(?:обновите|используйте) .{0,20}браузер"
    r"|浏览器.{0,12}(?:版本(?:过|太)低|过旧|不(?:受)?支持)|(?:升级|更换|使用).{0,8}浏览器"
    r"|ブラウザ.{0,12}(?:サポート|対応して|古い)|브라우저.{0,12}(?:지원(?:하지|되지)|오래)",
    r"some parts of this site will not work|site does not work without them"
    r"|settings of your browser"
    r"|your browser's help",
)
_FAILING = _Kind(
    "failed",
    "an error of its server",
    r"(?:500|502|503|504|520|521|522|523|524)?[ :-]*(?:internal server error|bad gateway"
    r"|service (?:temporarily )?unavailable|gateway time-?out"
    r"|web server is down|connection timed out)|database error|site maintenance|under maintenance"
    r"|server error|application error"
    r"|something went wrong|wartung(?:sarbeiten)?|maintenance(?: mode)?",
    r"gleich wieder für sie da|establishing a database connection|encountered an internal error|internal server error"
    r"|unable to complete your request"
    r"|temporarily (?:unavailable|unable to service|overloaded)|(?:performing|undergoing"
    r"|down for) .{0,20}maintenance"
    r"|we'll be (?:right )?back|an? (?:unexpected|application) error (?:has )?occurred"
    r"|try again (?:later"
    r"|in a few minutes)",
)
_KINDS = (_MISSING, _CHECK, _LOGIN, _CONSENT, _PAID, _FAILING)

MOST = 1_200
"""Characters of a notice's text."""
_BRIEF = 300
_LONGEST_NAME = 120
# Characters of a name beside the phrase: "Sorry", "404".
_BESIDE = 12
# Words of one who tells of a notice.
_TOLD = re.compile(r"\b(?:I|[Mm]y|[Mm]e|[Hh]ow to)\b")
_MOSTLY = 0.5
# Names that no script or form needs to go with.
_FIRM = re.compile(
    r"(?:40[13] ?)?(?:forbidden|unauthorized)|access (?:to this page has been )?denied|attention required",
    re.I,
)
_PARTS = re.compile(r"\s+[|·•–—/-]\s+|\s?[|｜]\s?|:\s")
_ENDS = re.compile(r"(?<=[.!?…])\s+|[。！？\n]+|\s{3,}")
_STRAIGHT = str.maketrans("‘’“”", "''\"\"")
_OUTER = " .…!?'\"\t\r\n"
# What a notice counts, or identifies a request by: years of copyright, codes, addresses, times, references.
_OF_NOTICES = re.compile(
    r"https?://\S+|\berror \d{3,4}\b|\w+/\d[\d.]*|\bv(?:ersion )?v?\d[\d.]*|\bport \d+|©\s*\d{4}"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}\b|\b[45]\d\d\b|\d{4}-\d\d-\d\d[T ]?[\d:.,]*"
    r"|\b\d{1,2}:\d\d(?::\d\d)?\b"
    r"|\b\w{0,40}[a-z]\d{1,40}[a-z][\w-]{0,40}"
    r"|(?:#|\b(?:id|ref|reference|ray|incident)\b)\D{0,20}[\w.:-]+|\b\d{1,2} (?:seconds?|minutes?"
    r"|sekunden|minuten|secondes)\b",
    re.I,
)


# What a request for consent counts: partners, months that it holds for, and what it costs to refuse.
_OF_CONSENT = re.compile(
    rf"{_COUNTED}|\b\d{{1,2}} (?:months?|mois|monaten?|meses|mesi|maanden)\b"
    r"|(?:[$€£¥]|USD|EUR|GBP|CHF) ?\d{1,6}(?:[.,]\d\d)?\b"
    r"|\b\d{1,6}(?:[.,]\d\d)? ?(?:[$€£¥]|USD|EUR|GBP|CHF|euros?|dollars|pounds|zł|kr)(?!\w)",
    re.I,
)


def without_offers(text: str) -> str:
    """`text` without what requests for consent count: partners, months and prices."""
    return _OF_CONSENT.sub(" ", text)


def has_figures(text: str) -> bool:
    """Whether a number stands in `text` that no notice counts or identifies a request by."""
    return any(map(str.isdigit, _OF_NOTICES.sub(" ", text)))


def notice(title: str, heading: str, text: str, *, passable: bool = False) -> Notice | None:
    """The notice that a page with this title, first heading and text is; None if it is none.

    `passable`: a script, a form or a reload could let the reader pass, so that a name alone may be a check's.
    """
    if len(text) > MOST:
        return None
    title, heading, text = (each.translate(_STRAIGHT) for each in (title, heading, text))
    sentences = [said for each in _ENDS.split(text) if (said := each.strip(_OUTER))]
    figures = has_figures(text)
    for kind in _KINDS:
        sure = passable or kind not in (_CHECK, _LOGIN)
        if kind is _CONSENT and has_figures(without_offers(text)):
            continue  # what is said about consent, by a site too, has figures
        if sign := _sign(kind, title, heading, sentences, figures and kind is not _CONSENT, sure):
            return Notice(kind.state, f"{kind.what}: {sign[:100]}")
    return None


def _sign(kind: _Kind, title: str, heading: str, sentences: list[str], figures: bool, sure: bool) -> str:
    """The words by which it is a notice of `kind`, or ""."""
    named = _name(kind, heading) or _name(kind, title)
    said = [each for each in sentences if kind.sentences.search(each) and not _TOLD.search(each)]
    length = sum(map(len, sentences))
    below = [each for each in said if each not in heading and each not in title]
    if named and below and (not figures or len(below) > 1):
        return named
    first = _says(kind, heading or next(iter(sentences), ""))
    if len(said) > 1 and (first or said[0] in sentences[:2]):
        return said[0]
    if figures or length > _BRIEF:
        return ""
    if (sure or _FIRM.fullmatch(named)) and _name(kind, title) and (_name(kind, heading) or not heading):
        return named
    own = [each for each in sentences if each not in heading]
    if below and sum(map(len, below)) >= _MOSTLY * sum(map(len, own)):
        return below[0]
    return first


def _says(kind: _Kind, sentence: str) -> str:
    found = kind.sentences.search(sentence[:_LONGEST_NAME])
    return sentence if found is not None and not _TOLD.search(sentence) else ""


def parts(title: str) -> list[str]:
    """A title, and its parts: names of pages, sections, sites."""
    whole = title[:_LONGEST_NAME]
    return [part.strip(_OUTER) for part in (whole, *_PARTS.split(whole))]


def _name(kind: _Kind, title: str) -> str:
    """The part of `title` that is such a phrase and hardly anything else."""
    for said in parts(title):
        if _TOLD.search(said):
            continue
        if kind.names.fullmatch(said):
            return said
        found = kind.sentences.search(said)
        if found is not None and len(said) - len(found[0]) <= _BESIDE:
            return said
    return ""


def without_pleas(text: str) -> str:
    """`text` without the sentences that ask for scripts or another browser, or to wait for them."""
    left = (each for each in _ENDS.split(text) if not _SCRIPTS.sentences.search(each))
    return " ".join(left).strip()


def is_plea(text: str) -> bool:
    """Whether `text` begins by asking for scripts, or for another browser."""
    return _SCRIPTS.sentences.search(text[:_BRIEF]) is not None
