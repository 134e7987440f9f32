"""Judges answer questions (`Question` -> `Judgment`): vLLM, OpenAI-compatible servers, or the lexical judge."""

from adjudge.judges.judgment import Asked, Judge, JudgeIdentity, JudgeReason, Judgment, Reply, Status, Usage
from adjudge.judges.lexical import LexicalJudge
from adjudge.judges.question import Answer, Choice, Context, Media, Question, Section, numbered
from adjudge.judges.scripted import ScriptedJudge

__all__ = [
    "Answer",
    "Asked",
    "Choice",
    "Context",
    "Judge",
    "JudgeIdentity",
    "JudgeReason",
    "Judgment",
    "LexicalJudge",
    "Media",
    "Question",
    "Reply",
    "ScriptedJudge",
    "Section",
    "Status",
    "Usage",
    "numbered",
]
