"""The search page."""

import asyncio

from adjudge.engine.markup import tag
from adjudge.engine.viewer import search
from adjudge.engine.viewer.frame import Frame, choice, submit
from adjudge.engine.viewer.opened import OpenRun
from adjudge.engine.viewer.query import SearchQuery, address

__all__ = ["search_page"]

_WHERE = [
    ("statements", "statements and criteria"),
    ("answers", "raw answers"),
    ("pages", "pages"),
    ("reports", "reports"),
    ("tasks", "tasks"),
]


async def search_page(run: OpenRun, frame: Frame, query: SearchQuery) -> str:
    """What is found of the words that are looked for, and where to go on."""
    form = submit(
        "search",
        choice("Look in", "where", _WHERE, query.where),
        label="Look there",
        keep={"q": query.q},
    )
    if not query.q.strip():
        return frame.page("Search", form, tag("p", "Type words to look for."))
    found = await asyncio.to_thread(search.found_of, await _steps(run, query))
    lines = [
        tag(
            "li",
            tag("a", find.title, href=find.link),
            tag("p", find.before, tag("mark", find.words), find.after, dir="auto"),
        )
        for find in found.finds
    ]
    so_far = "" if found.after is None else " so far"
    more = address("search", query, after=found.after)
    return frame.page(
        f"Search: {query.q}",
        form,
        tag("p", f"{len(lines)} found on this page{so_far}.", role="status"),
        tag("ol", *lines, class_="finds") if lines else None,
        tag("p", tag("a", "Search on", href=more, rel="next")) if found.after is not None else None,
        words=query.q,
    )


async def _steps(run: OpenRun, query: SearchQuery) -> search.Steps:
    if query.where == "statements":
        return search.in_statements(await run.cards(), query.q, query.after)
    if query.where == "answers":
        return search.in_answers(run.place, run.record.judge.fingerprint, query.q, query.after)
    if query.where == "pages":
        return search.in_pages(run.place, run.record.pages, query.q, query.after)
    look = search.in_reports if query.where == "reports" else search.in_tasks
    return look(await run.dataset(), query.q, query.after)
