"""What people are shown of an item: what the judge was shown, the passage nearest to the item first."""

import msgspec

from adjudge.engine.records.items import Item
from adjudge.engine.viewer.data.open_run import OpenRun
from adjudge.engine.viewer.data.passages import nearest
from adjudge.engine.viewer.data.query import NotThere, ReportQuery
from adjudge.scoring.contract.case import Unread
from adjudge.scoring.text.aside import aside, storable

__all__ = ["Shown", "shown_of"]

MAX_CHARS = 400_000


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """The text that the judge was shown, in three pieces: `before` the nearest passage, the `passage`, and `after` it.

    `fields` are the parts of the judge's question without which nobody can answer (references, say), `prompt` is the
    task's. `missing` says why the text is absent, and `cut` how many of its characters are left out.
    """

    prompt: str
    before: str = ""
    passage: str = ""
    after: str = ""
    fields: dict[str, tuple[str, ...]] = {}
    missing: str = ""
    cut: int = 0


async def shown_of(run: OpenRun, item: Item) -> Shown:
    """What is shown of `item`: the context of the judge's question, or the page as it was read."""
    prompt = (await run.prompts()).get(item.task_id, "")
    try:
        text, fields = await _asked(run, item)
    except NotThere as error:
        text, fields = await _page(run, item), {}
        if not text:
            return Shown(prompt=prompt, missing=str(error))
    kept = storable(text[:MAX_CHARS])
    try:
        span = await aside(nearest, kept, storable(item.line.what))
    except Unread:
        span = None
    start, end = (0, 0) if span is None else (span.start, span.end)
    return Shown(
        prompt=prompt,
        before=kept[:start],
        passage=kept[start:end],
        after=kept[end:],
        fields=fields,
        cut=len(text) - len(kept),
    )


async def _asked(run: OpenRun, item: Item) -> tuple[str, dict[str, tuple[str, ...]]]:
    """The context of the judge's question, and those of its fields that its kind shows. Raises NotThere."""
    report = ReportQuery(system=item.system, task=item.task_id, sample=item.sample, protocol=item.protocol)
    asked = (await run.questions(report, item.protocol)).get(item.line.judgment)
    if asked is None:
        raise NotThere("the judge's question cannot be made again from the run's input and prompts")
    question = asked.question
    text = "\n\n".join(section.text for section in question.context.sections)
    fields = {}
    for name in item.labelled.kind.shows:
        value = getattr(question, name, ())
        fields[name] = (value,) if isinstance(value, str) else tuple(map(str, value))
    return text, fields


async def _page(run: OpenRun, item: Item) -> str:
    if not item.line.url:
        return ""
    _, pages = await run.stores()
    page = await pages.get(item.line.url)
    return "" if page is None else page.text
