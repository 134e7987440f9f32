"""Notices in a page's place, in many languages and of many services, beside pages that are named or sound like them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.fetchers.notices import MOST, has_figures, is_plea, notice, without_pleas

MISSING = [
    (
        "Page not found – Gazette",
        "Oops! That page can’t be found.",
        "It looks like nothing was found at this location.",
    ),
    ("Gazette", "Page not found", "Sorry, we could not find what you were looking for."),
    ("Salt works", "", "We couldn't find the page you were looking for. The page has been moved or deleted."),
    (
        "404 - File or directory not found.",
        "Server Error",
        "The resource you are looking for might have been removed.",
    ),
    (
        "404 Not Found",
        "Not Found",
        "The requested URL /x was not found on this server. Apache/2.4.57 Port 80",
    ),
    (
        "Error 404 (Not Found)!!1",
        "",
        "404. That’s an error. The requested URL /x was not found on this server.",
    ),
    ("Article no longer available", "This article is no longer available", "Its address may have changed."),
    ("YouTube", "This video isn't available anymore", ""),
    ("Fehler 404 | Zeitung", "Die Seite wurde nicht gefunden", "Die Seite existiert leider nicht (mehr)."),
    ("Erreur 404", "Cette page n'existe pas", "La page que vous recherchez est introuvable."),
    ("Error 404 - Diario", "No se ha encontrado la página", "La página solicitada no existe."),
    ("Página não encontrada", "Ops! Página não encontrada", "A página que você procura não existe."),
    ("Errore 404", "Pagina non trovata", "La pagina richiesta non esiste."),
    ("Pagina niet gevonden", "Deze pagina bestaat niet", "De pagina is verplaatst."),
    ("Strona nie istnieje", "Nie znaleziono strony", "Strona, której szukasz, nie istnieje."),
    ("Sidan hittades inte", "Sidan kunde inte hittas", "Sidan du söker finns inte."),
    ("Siden finnes ikke", "Fant ikke siden", "Siden du leter etter finnes ikke."),
    ("Ошибка 404", "Страница не найдена", "Запрашиваемая страница не существует."),
    ("404 Not Found | 新聞", "お探しのページは見つかりませんでした", "ページが移動された可能性があります。"),
    ("페이지를 찾을 수 없습니다", "요청하신 페이지를 찾을 수 없습니다.", "주소를 확인해 주세요."),
    ("找不到網頁", "找不到您要的頁面", "您要找的頁面不存在。"),
    ("الصفحة غير موجودة", "عذراً، الصفحة غير موجودة", ""),
    ("Sayfa bulunamadı", "Aradığınız sayfa bulunamadı", "Sayfa taşınmış olabilir."),
    ("Không tìm thấy trang", "Không tìm thấy trang", "Trang bạn tìm không tồn tại."),
    ("Halaman tidak ditemukan", "Halaman tidak ditemukan", "Halaman yang Anda cari tidak ada."),
    ("Stránka nenalezena", "Stránka nebyla nalezena", "Hledaná stránka neexistuje."),
    ("Zeitung", "Hoppla!", "Diese Seite ist nicht mehr verfügbar."),
    ("Error", "Uh-oh!", "This page seems to have gone missing."),
    ("Gazette", "404", "Ooops, something went wrong."),
    ("gazette.example is for sale", "gazette.example", "This domain is for sale. Buy this domain."),
]
WALLS = [
    (
        "Access Denied",
        "Access Denied",
        "You don't have permission to access this server. Reference #18.5f3c.17",
    ),
    (
        "Attention Required! | Cloudflare",
        "Sorry, you have been blocked",
        "You are unable to access gazette.example.",
    ),
    (
        "Waiting Room",
        "You are now in line.",
        "Your estimated wait time is 7 minutes. We use a virtual queue.",
    ),
    ("Reddit - Prove your humanity", "Prove your humanity", "Let us know you’re a real person. © 2025"),
    (
        "Blocked",
        "You've been blocked by network security.",
        "If you think you were blocked by mistake, tell us.",
    ),
    ("ScienceDirect", "Are you a robot?", "Please confirm you are a human. IP Address: 203.0.113.5"),
    ("Error - Cookies Turned Off", "Error - Cookies Turned Off", "Cookies are disabled for this browser."),
    ("Request Rejected", "", "The requested URL was rejected. Your support ID is: 1234567890"),
    ("403 Forbidden", "403 Forbidden", "nginx"),
    ("Bitte warten…", "Einen Augenblick bitte", "Ihr Browser wird überprüft."),
    ("Mein Konto", "Mein Konto", "Bitte loggen Sie sich ein, um den Artikel zu lesen."),
    ("Error", "", "The owner of this website (gazette.example) has banned your IP address (203.0.113.5)."),
    ("安全验证", "安全验证", "请完成下方验证后继续访问。"),
    (
        "Вы не робот?",
        "Подтвердите, что запросы отправляли вы, а не робот",
        "Запросы похожи на автоматические.",
    ),
    ("アクセス確認", "ロボットではないことを確認してください", ""),
    ("보안 확인", "로봇이 아닙니다", "비정상적인 접근이 감지되었습니다."),
    ("Sicherheitsprüfung", "Bitte bestätigen Sie, dass Sie ein Mensch sind", ""),
    ("Un instant…", "Vérification de sécurité", "Merci de confirmer que vous n'êtes pas un robot."),
    ("Login required - Rails forum", "Login required", "You must be logged in to view this page."),
    ("Google Docs: Sign-in", "Sign in", "to continue to Docs"),
    ("Anmeldung erforderlich", "Anmeldung", "Bitte melden Sie sich an, um fortzufahren."),
    (
        "DER KURIER – Zustimmung",
        "Willkommen beim Kurier",
        "Um der Nutzung mit Werbung zuzustimmen, klicken Sie hier. Wir und unsere 162 Partner verarbeiten Daten. "
        "Ihre Einwilligung können Sie widerrufen. Ohne Tracking ab 3,99 Euro im Monat.",
    ),
    (
        "Votre choix",
        "Votre vie privée compte",
        "Avec votre accord, nos 842 partenaires et nous utilisons des cookies. Refuser et s’abonner à 2 € par mois.",
    ),
    (
        "Your choice",
        "How would you like to read?",
        "Accept advertising: we and our 287 partners keep data. Or pay 4.99 pounds a month and read without ads.",
    ),
    (
        "Diario",
        "Su privacidad es importante",
        "Nosotros y nuestros 884 socios usamos cookies. Puede retirar su consentimiento. Suscribirse por 2 €.",
    ),
    (
        "Il Porto",
        "Informativa",
        "Noi e 1.431 terze parti selezionate utilizziamo cookie. Puoi rifiutare o revocare il tuo consenso.",
    ),
    (
        "DPG Media Privacy Gate",
        "Jouw privacy-instellingen",
        "Wij en onze 231 partners gebruiken cookies. Klik op Akkoord als je hiermee instemt.",
    ),
    (
        "Zeitung",
        "Lesen Sie mit Werbung oder im PUR-Abo. Sie haben die Wahl.",
        "Ohne Werbetracking für 5,20 € im Monat.",
    ),
]
OTHERS = [
    ("failed", "Wartung", "Wartungsarbeiten", "Wir sind gleich wieder für Sie da."),
    ("wall", "ERROR", "403 ERROR", "The request could not be satisfied. Request blocked."),
    ("missing", "Job closed", "This job is no longer available", ""),
    ("missing", "Fehler", "Diese Seite gibt es nicht (mehr)", ""),
    ("teaser", "The salt tax", "The salt tax", "The rest of this article is for subscribers only."),
    (
        "teaser",
        "Subscribe to read | Gazette",
        "Subscribe to unlock this article",
        "Our full range of subscriptions.",
    ),
    ("failed", "Site Maintenance", "We'll be back soon!", "We're performing some maintenance."),
    ("failed", "Database Error", "Error establishing a database connection", ""),
]
NOTICES = [("missing", *each) for each in MISSING] + [("wall", *each) for each in WALLS] + OTHERS

PAGES = [
    ("404 Not Found", "404 Not Found", "A film by Ida Marrow, shown in 1911 to 5,310 people in Orrin."),
    (
        "Page not found: city website shows 404",
        "City website shows 404 after fire",
        "14 pages could not be found.",
    ),
    (
        "Access denied",
        "Access denied",
        "The report of the Orrin council on 41 closed footpaths was printed in 1994.",
    ),
    (
        "Please wait",
        "Please wait",
        "The song Please wait by the choir of Orrin sold 5,310 copies in the county.",
    ),
    ("Blocked", "Blocked", "The pass of Orrin was blocked for 41 days in 1932."),
    ("Sign in the window", "", "A short story."),
    ("You are now in line", "You are now in line", "A photo book of 1988 with 64 plates on queues in Orrin."),
    ("Cookie consent", "Cookie consent", "61 percent of 1,340 readers pressed the first button."),
    (
        "Privacy policy",
        "Privacy policy",
        "We and our 162 partners process data, if you consent. You may withdraw your consent at any time. "
        "Logs are kept for 17 days.",
    ),
    ("Plans", "Plans", "The plan with ads costs $5.99 a month. The plan without ads costs $9.99 a month."),
    (
        "Your privacy in figures",
        "Your privacy in figures",
        "Our 162 partners were asked in 2019; 41 of them withdrew. A reader could read on with ads.",
    ),
    ("Mesh chair", "", "The store will not work correctly when cookies are disabled. Search"),
    (
        "How to fix 'Page not found'",
        "How to fix 'Page not found'",
        "Open the settings and save them again. "
        "The rules are written anew. If the page can't be found after that, look at these.",
    ),
    ("Lost pages", "Lost pages", "Pages that could not be found were copied from the abbot's book."),
    ("Forum", "", "My browser says that the site is not available in my region. Same here since Monday."),
    ("Login", "Login", "Login is a parish in the west of the county, with a chapel."),
    ("Trial of the baker", "Trial of the baker", "The baker was freed; the loaf could not be found."),
    ("404 - A car", "The car of 1969", "It was built until 1975."),
    (
        "Subscribe to read | Gazette",
        "Subscribe to read",
        "In 2014 the Gazette asked 2,100 readers; 14 percent did.",
    ),
    (
        "Checking your browser - Forum",
        "",
        "I get 'Checking your browser' when I open the timetable of the 7:40 train, No. 12.",
    ),
]


@pytest.mark.parametrize(("state", "title", "heading", "below"), NOTICES)
def test_notices_are_told_by_what_they_say(state: str, title: str, heading: str, below: str) -> None:
    found = notice(title, heading, f"{heading}\n{below}")
    assert found is not None
    assert found.state == state, found


@pytest.mark.parametrize(("title", "heading", "below"), PAGES)
def test_pages_about_notices_are_none(title: str, heading: str, below: str) -> None:
    assert notice(title, heading, f"{heading}\n{below}") is None


@given(st.sampled_from(NOTICES), st.text(alphabet="abcdefgh ", min_size=MOST, max_size=2 * MOST))
def test_no_notice_has_a_long_text(each: tuple[str, str, str, str], more: str) -> None:
    _, title, heading, below = each
    assert notice(title, heading, f"{heading}\n{below}\n{more}x" + "x" * MOST) is None


@given(st.text(), st.text(), st.text())
def test_any_text_is_told(title: str, heading: str, text: str) -> None:
    notice(title, heading, text)
    assert isinstance(without_pleas(text), str)
    assert is_plea(text) in (True, False)


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("It sold 5,310 copies.", True),
        ("Built in 1887", True),
        ("HTTP 503, IP 203.0.113.5, 2025-05-02T10:11:12, © 2025", False),
        ("Reference #18.5f3c.17", False),
        ("Wait for 5 seconds", False),
        ("", False),
    ],
)
def test_figures_are_numbers_that_no_notice_counts(text: str, there: bool) -> None:
    assert has_figures(text) == there


def test_pleas_for_scripts_are_left_out() -> None:
    assert without_pleas("Please enable JavaScript. Nineteen arches.") == "Nineteen arches."
    assert is_plea("JavaScript is not available. Try again")
    assert not is_plea("Nineteen arches carry the line.")
