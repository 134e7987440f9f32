"""Bot checks and login walls that a site shows in place of a page, recognised by signs that few other pages have."""

import re
from collections.abc import Mapping

# Response headers by which services say that they answered with a challenge in place of the page.
_CHALLENGES = {
    "cf-mitigated": ("challenge",),
    "x-amzn-waf-action": ("challenge", "captcha"),
    "sg-captcha": ("challenge",),
}
# Characters; a page with more text than this says more than "prove that you are human" or "log in".
_HARDLY_ANY = 600
_BOT_CHECK = re.compile(
    r"just a moment|attention required|checking your browser.*|are you (a )?(robot|human)|(robot|captcha) check"
    r"|(human|bot|browser|security|captcha) (verification|check)|(please )?(verify|confirm) (that )?you are (a )?human"
    r"|pardon our interruption|ddos-guard|access (to this page has been )?denied|please wait|one moment, please",
    re.I,
)
_LOGIN = re.compile(
    r"(please )?(log|sign)[ -]?in( to .*)?|anmelden|se connecter|iniciar sesión|登录|登入|ログイン", re.I
)
_LONGEST_TITLE = 100


def bar_of_headers(headers: Mapping[str, str]) -> str | None:
    """The bot check that the headers of a response announce, or None."""
    for name, values in _CHALLENGES.items():
        if headers.get(name, "").strip().lower() in values:
            return f"a bot check ({name})"
    return None


def bar_of_text(title: str, text: str) -> str | None:
    """The bot check or login that `title` names on a page with hardly any text, or None."""
    if len(text) > _HARDLY_ANY:
        return None
    for part in re.split(r" [|·–—:-] ", title[:_LONGEST_TITLE]):
        said = part.strip(" .…!?")
        if _BOT_CHECK.fullmatch(said):
            return f"a bot check: {said}"
        if _LOGIN.fullmatch(said):
            return f"a login: {said}"
    return None
