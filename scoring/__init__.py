"""How a report becomes a score: one file a protocol, its questions beside it; `kernels` for the numbers."""

from adjudge.scoring import dr3, drmi, fact, livedr, race, rigorous, rubrics

__all__ = ["dr3", "drmi", "fact", "livedr", "race", "rigorous", "rubrics"]
