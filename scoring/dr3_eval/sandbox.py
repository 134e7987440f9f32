"""A closed world of sources: the files a user handed over, the pages of a corpus, and which of them a report cites."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from adjudge.judges import Context, Media
from adjudge.scoring.contract.case import Report
from adjudge.scoring.dr3_eval.citing import Cited, Label, read_cited
from adjudge.scoring.dr3_eval.code_titles import covered
from adjudge.scoring.text.aside import aside, storable

__all__ = ["Role", "Sandbox", "Source"]

_DOCUMENTS = (".md", ".txt", ".pdf", ".docx", ".doc", ".pptx", ".ppt", ".xlsx", ".xls")

Role = Literal["user_file", "supportive", "distractor", "noise", "unlabelled"]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A user's file or a page of the corpus: its text, or what a judge must look at or listen to.

    `around` is the white space before and behind the text of a text file. A page `beyond` is not in this corpus.
    """

    name: str = ""
    title: str = ""
    url: str = ""
    text: str = ""
    media: Media | None = None
    role: Role = "user_file"
    around: tuple[str, str] = ("", "")
    beyond: bool = False

    @property
    def label(self) -> str:
        """The name shown to people and judges."""
        return self.name or self.title or self.url

    @property
    def required(self) -> bool:
        """Whether a good report cites it: user files and supportive pages."""
        return self.role in ("user_file", "supportive")

    def context(self, limit: int | None = None) -> Context:
        """The source as judges are shown it: its name, its text up to `limit` characters, its picture or sound."""
        media = () if self.media is None else (self.media,)
        return Context.of(*media, name=self.label, source=self.text[:limit])


class Sandbox:
    """The sources of one task, by their places in `sources`."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = tuple(sources)

    async def cited(self, report: Report) -> Cited:
        """What `report` cites of the sandbox; a long one is read beside the event loop. Raises Unread, PoolError."""
        labels = tuple(
            Label(storable(one.name), storable(one.title), storable(one.url), one.role != "user_file")
            for one in self.sources
        )
        citations = tuple(
            msgspec.structs.replace(
                one, url=storable(one.url), title=storable(one.title), marker=storable(one.marker)
            )
            for one in report.citations
        )
        return await aside(read_cited, storable(report.text), citations, labels)

    def coverage(self, cited: Cited) -> float | None:
        """Required sources that are cited over all required ones (DR3-Eval, citation coverage); None without one."""
        required = [place for place, source in enumerate(self.sources) if source.required]
        return sum(place in cited.sources for place in required) / len(required) if required else None

    @property
    def titles(self) -> tuple[str, ...]:
        """What the published code wants cited: titles of supportive pages, and names of documents, each once."""
        pages = [source.title for source in self.sources if source.role == "supportive"]
        files = [source.name for source in self.sources if source.role == "user_file"]
        documents = [name for name in files if name.lower().endswith(_DOCUMENTS)]
        return tuple(dict.fromkeys(storable(title) for title in [*pages, *documents] if title))

    async def code_coverage(self, report: Report) -> float | None:
        """The share of `titles` that `report` cites by the code's rule; None without one. Raises Unread, PoolError."""
        if not self.titles:
            return None
        found = await aside(covered, storable(report.text), list(self.titles))
        return sum(found) / len(found)
