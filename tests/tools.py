"""The smallest Tools: a judge and some pages, no store, no engine."""

import asyncio
from collections.abc import Iterable, Mapping

from adjudge.fetchers.page import Page, PageSource
from adjudge.fetchers.urls import NormalURL
from adjudge.judges import Asked, Judge, Judgment, Question


class DirectTools(PageSource):
    """Asks the judge directly; a URL not in `pages` is page_not_in_snapshot. Remembers what was asked and read."""

    def __init__(self, judge: Judge, pages: Mapping[str, Page] | None = None) -> None:
        self.judge = judge
        self.pages = dict(pages or {})
        self.questions: list[Question] = []
        self.urls: list[str] = []

    async def ask(self, question: Question) -> Judgment:
        self.questions.append(question)
        key = question.identity()[:16].ljust(16, b"\0")
        reply = await self.judge.answer(question, Asked(key=key))
        return Judgment(
            key=key,
            group=question.context.digest,
            question=type(question).__name__,
            answer=reply.answer,
            status="scored" if reply.answer is not None else "unscored",
            reason=reply.reason,
            text=reply.text,
            finish_reason=reply.finish_reason,
            usage=reply.usage,
            seconds=reply.seconds,
            judge=self.judge.identity.fingerprint,
            engine="test",
            written_at=0,
        )

    async def ask_all(self, questions: Iterable[Question]) -> list[Judgment]:
        return await asyncio.gather(*map(self.ask, questions))

    async def page(self, address: NormalURL) -> Page:
        self.urls.append(address)
        return self.pages.get(address) or page(address, reason="page_not_in_snapshot")


def page(url: str, text: str = "", reason: str | None = None, title: str = "", description: str = "") -> Page:
    return Page(
        url=url,
        final_url=url,
        status="failed" if reason else "read",
        reason=reason,
        fetched_at=0.0,
        content_type="text/html",
        sha256="",
        title=title,
        description=description,
        text=text,
    )
