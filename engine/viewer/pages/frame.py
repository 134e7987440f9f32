"""What the viewer's pages share: the frame around them, and long texts."""

from collections.abc import Sequence

import msgspec

from adjudge.engine.rendering.templates import render
from adjudge.engine.viewer.data.query import address

__all__ = ["PART_CHARS", "Frame", "part_of"]

PART_CHARS = 100_000


class Frame(msgspec.Struct, frozen=True):
    """The frame of a run's pages: the run's name and judge, and the address of the other run, if there is one.

    A page shows `rows` rows of a table at once. A `still` page is a file of its own that no server answers for; without
    `sources` it holds only passages of the pages that were judged. Of a run that has not finished, `state` says how it
    stands, and `headline` how far it is.
    """

    run: str
    judge: str
    other: str = ""
    rows: int = 100
    still: bool = False
    sources: bool = True
    state: str = ""
    headline: str = ""

    @property
    def places(self) -> list[tuple[str, str]]:
        """The pages that the header of every page leads to, by text and address."""
        places = [("Systems", "./"), ("Tasks", "tasks"), ("Leaderboard", "leaderboard"), ("Search", "search")]
        if self.other:
            places += [("Differences", "differences"), ("The other run", self.other)]
        return [(text, to if to == self.other else address(to)) for text, to in places]

    def show(
        self,
        template: str,
        title: str,
        *,
        crumbs: Sequence[tuple[str, str]] = (),
        words: str = "",
        here: str = "",
        **values: object,
    ) -> str:
        """The page that `template`, which extends base.html.jinja, makes of `values`.

        `crumbs` are (text, address) of the pages above it, `words` stand in the search field, and `here` is the address
        of the place in the header that it belongs to.
        """
        return render(
            template,
            __package__,
            frame=self,
            address=address,
            title=title,
            crumbs=crumbs,
            words=words,
            here=address(here) if here else "",
            **values,
        )


def part_of(text: str, part: int) -> tuple[int, int]:
    """Where part number `part` of a long text begins and ends; the last part if there are fewer."""
    last = max(1, -(-len(text) // PART_CHARS))
    start = (min(part, last) - 1) * PART_CHARS
    return start, min(start + PART_CHARS, len(text))
