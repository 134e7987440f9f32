"""Three walks through the house, followed by a profiler hook: the rooms and modules they enter, and what is done twice.

    python -m benchmarks.walks [--json]

- report: `adjudge evaluate` on one task and one report, RACE and the embedded judge, from the files to the leaderboard;
- rollout: `RewardModel` from its configuration to the reward of one rollout;
- URL: a report with one citation through FACT, from the citation to the verdict, with the page in a snapshot.

Each walk is done twice and the second one is followed, so that neither imports nor caches count. A room is a package of
engine/, or one of the folders beside it; a module is entered when one of its functions runs. A return is a call from
one room into another that the walk had entered before; a pair of rooms counts once. `repeated` counts functions that
were called more than once with the same text of at least 16 characters, which is work done twice.
"""

import argparse
import asyncio
import contextlib
import io
import os
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import msgspec

from adjudge.engine.commands.main import main as command
from adjudge.engine.config.run import RunConfig
from adjudge.engine.evaluation.assembly import open_evaluator
from adjudge.engine.formats.dataset import load_dataset
from adjudge.engine.rewards.model import RewardModel
from adjudge.engine.runs.pulse import THREAD as PULSE

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("engine", "judges", "fetchers", "scoring", "prompts")
INVISIBLE = ("<module>", "<lambda>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")
TEXT = 16  # characters: shorter texts are names and labels

TASK = {
    "id": "1",
    "prompt": "What does the harbour survey of the year 2021 say about the depth of the channel?",
    "gold": {
        "race": {
            "dimension_weight": {
                "comprehensiveness": 0.25,
                "insight": 0.25,
                "instruction_following": 0.25,
                "readability": 0.25,
            },
            "criterions": {
                dimension: [{"criterion": f"Speaks of depth ({dimension})", "explanation": "", "weight": 1.0}]
                for dimension in ("comprehensiveness", "insight", "instruction_following", "readability")
            },
            "reference": "The survey measured a depth of twelve metres along the whole channel.",
        }
    },
}
URL = "https://harbour.example/survey/2021"
REPORT = {
    "task_id": "1",
    "system": "a",
    "text": f"# Depth\n\nThe channel of the harbour is twelve metres deep [1].\n\n## References\n\n[1] {URL}\n",
}
PAGE = "<html><title>Survey</title><body><p>Now the channel of the harbour is twelve metres deep.</p></body></html>"


class Walk(msgspec.Struct, frozen=True):
    """A walk: `rooms` and `modules` in the order they were entered, `returns` as `from > to`, `repeated` functions."""

    name: str
    rooms: list[str]
    modules: list[str]
    returns: list[str]
    repeated: dict[str, int]


class _Follower:
    """A profiler function that notes every call of a function of the house from another of its rooms."""

    def __init__(self) -> None:
        self.rooms: dict[str, None] = {}
        self.modules: dict[str, None] = {}
        self.crossings: set[tuple[str, str]] = set()
        self.returns: list[tuple[str, str]] = []
        self.texts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._homes: dict[CodeType, str | None] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call" or frame.f_lasti > 5:  # a coroutine that goes on was entered before
            return
        if threading.current_thread().name == PULSE:  # comes with the clock, not with the walk
            return
        module = self._home(frame.f_code)
        if module is None or frame.f_code.co_name in INVISIBLE:
            return
        room = _room(module)
        caller = self._caller(frame)
        if caller is not None and _room(caller) != room:
            crossing = _room(caller), room
            if crossing not in self.crossings and room in self.rooms:
                self.returns.append(crossing)
            self.crossings.add(crossing)
        self.rooms.setdefault(room)
        self.modules.setdefault(module)
        self._note_text(frame, module)

    def _caller(self, frame: FrameType) -> str | None:
        above = frame.f_back
        while above is not None:
            module = self._home(above.f_code)
            if module is not None:
                return module
            above = above.f_back
        return None

    def _note_text(self, frame: FrameType, module: str) -> None:
        code = frame.f_code
        names = code.co_varnames[: code.co_argcount]
        given = [frame.f_locals.get(name) for name in names if name not in ("self", "cls")]
        if given and isinstance(given[0], str) and len(given[0]) >= TEXT:
            self.texts[f"{module}:{code.co_qualname}"][repr(given)] += 1

    def _home(self, code: CodeType) -> str | None:
        if code not in self._homes:
            try:
                found = Path(code.co_filename).resolve().relative_to(ROOT)
                self._homes[code] = str(found.with_suffix("")) if found.parts[0] in FOLDERS else None
            except ValueError:
                self._homes[code] = None
        return self._homes[code]

    def walk(self, name: str) -> Walk:
        """What was followed."""
        return Walk(
            name,
            list(self.rooms),
            list(self.modules),
            [f"{a} > {b}" for a, b in self.returns],
            {
                function: max(texts.values())
                for function, texts in self.texts.items()
                if max(texts.values()) > 1
            },
        )


def _room(module: str) -> str:
    parts = module.split("/")
    return "/".join(parts[:2]) if parts[0] == "engine" and len(parts) > 2 else parts[0]


@contextlib.contextmanager
def _followed() -> Iterator[_Follower]:
    follower = _Follower()
    threading.setprofile(follower)
    sys.setprofile(follower)
    try:
        yield follower
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _config(folder: Path, **settings: object) -> Path:
    (folder / "pages").mkdir(parents=True)
    (folder / "tasks.jsonl").write_bytes(msgspec.json.encode(TASK))
    (folder / "reports.jsonl").write_bytes(msgspec.json.encode(REPORT))
    (folder / "pages/survey.html").write_text(PAGE)
    (folder / "pages/index.jsonl").write_bytes(
        msgspec.json.encode({"url": URL, "file": "survey.html", "content_type": "text/html"})
    )
    config = {
        "tasks": "tasks.jsonl",
        "reports": ["reports.jsonl"],
        "fetch": {"mode": "snapshot", "snapshot": "pages"},
        **settings,
    }
    file = folder / "adjudge.yaml"
    file.write_bytes(msgspec.json.encode(config))  # JSON is YAML
    return file


def _report(folder: Path) -> Walk:
    config = _config(folder, protocols=["race"])
    with _followed() as follower:
        try:
            command(["evaluate", str(config)])
        except SystemExit as end:
            if end.code != 0:
                raise RuntimeError(f"the report is not scored: exit code {end.code}") from end
    return follower.walk("report")


def _rollout(folder: Path) -> Walk:
    config = _config(folder, protocols=["race"], reward={"weights": {"race.overall": 1.0}})
    with _followed() as follower, RewardModel(str(config)) as model:
        (reward,) = model.score_sync([{"task_id": "1", "text": REPORT["text"]}])
    if reward.value is None:
        raise RuntimeError(f"the rollout has no reward: {reward.reason}")
    return follower.walk("rollout")


def _url(folder: Path) -> Walk:
    config = RunConfig.load(_config(folder, protocols=[{"name": "fact", "extraction": "markers"}]))
    dataset = load_dataset(config.format, config.tasks, config.reports)

    async def score() -> Walk:
        async with open_evaluator(config) as evaluator:
            (protocol,) = evaluator.protocols
            (case,) = dataset.cases(1)
            with _followed() as follower:
                card = await evaluator.score(case, protocol)
        if card.status != "scored" or not card.pages:
            raise RuntimeError(f"no verdict: {card.reason}")
        return follower.walk("URL")

    return asyncio.run(score())


def walks() -> Iterator[Walk]:
    """Every walk, followed the second time it is done."""
    ways: tuple[Callable[[Path], Walk], ...] = (_report, _rollout, _url)
    for way in ways:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            way(Path(folder, "first"))
            yield way(Path(folder, "second"))


def lines(found: Walk) -> Iterator[str]:
    """The walk for people."""
    yield (
        f"{found.name}: {len(found.rooms)} rooms, {len(found.modules)} modules, {len(found.returns)} returns, "
        f"{len(found.repeated)} repeated"
    )
    yield f"  rooms: {', '.join(found.rooms)}"
    yield f"  returns: {', '.join(found.returns) or 'none'}"
    yield from (f"  {times} x the same text: {function}" for function, times in found.repeated.items())


def main() -> None:
    """Read the command line, follow the walks and print them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    options: Any = parser.parse_args()
    os.environ["NO_COLOR"] = "1"
    found = list(walks())
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        print("\n".join(line for walk in found for line in lines(walk)))


if __name__ == "__main__":
    main()
