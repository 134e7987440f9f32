"""A terminal whose text may come from anybody: no report, name or error can steer it."""

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from adjudge.engine.config.redaction import printable

__all__ = ["Terminal"]


class Terminal(Console):
    """A console that shows control characters as replacement characters; its own colours and movements stay."""

    def on_broken_pipe(self) -> None:
        """Raise the error: rich itself would exit with 1."""
        raise

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """The segments of `renderable`, their texts made printable."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)
