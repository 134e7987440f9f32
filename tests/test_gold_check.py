"""Checks of gold: the faults planted in tests/gold_faults are found, and sound items are left alone."""

import json
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.commands.gold import GoldCheck, check_config, check_gold
from adjudge.engine.config.run import RunConfig
from adjudge.judges import Question, ScriptedJudge, numbered
from adjudge.judges.lexical import coverage, terms
from adjudge.scoring.answers.sameness import Sameness
from adjudge.scoring.deepresearch_bench.race import MarkedPair, Pair, PairMarks
from adjudge.scoring.dr3_eval.questions import ChecklistMet, Met, Recall, Recalled
from adjudge.scoring.drmi_bench.drmi import Labels, LabelStatements, SameSubtask
from adjudge.scoring.gold.review import Flaws, Held, ItemFlaws, ItemsHeld, SameItem
from adjudge.scoring.gold.rules import flaw, holds
from adjudge.scoring.kernels.agreement.variance import item_figures
from adjudge.scoring.livedrbench.claims import SameClaim
from adjudge.scoring.rubrics.asking import PointsGiven, RubricPoints
from adjudge.scoring.text.cleaning import clean_report
from tests.commands import run as run_command

FAULTS = Path(__file__).parent / "gold_faults"
PAGE = Path(__file__).parent.parent / "docs" / "gold.md"
PROTOCOLS = ["race", "dr3", "rubrics", "rigorous", "livedr", "drmi"]

# The problems of the check that say what is wrong with a planted fault of each kind.
SAYS: dict[str, set[str]] = {
    "unsupported": {"unsupported"},
    "wrong_figure": {"contradicted", "mislabelled"},
    "quote_missing": {"quote_missing"},
    "mislabelled": {"mislabelled"},
    "duplicate": {"duplicate"},
    "paraphrase": {"duplicate"},
    "empty_met": {"met_by_nothing"},
    "vague": {"vague"},
    "compound": {"compound"},
    "weights": {"weights"},
    "common_keyword": {"common_keyword"},
    "conflicting_keyword": {"conflicting_keyword"},
    "no_separation": {"no_separation"},
    "inverted": {"inverted"},
}
# Kinds of which a judge's opinion has a part: taken from the annotations in the second test below, not in the first.
RESTS_ON_OPINION = {"unsupported", "wrong_figure", "mislabelled", "paraphrase", "no_separation", "inverted"}

Key = tuple[str, str, str]


def rows(name: str) -> Iterator[dict[str, Any]]:
    return map(json.loads, (FAULTS / name).read_text(encoding="utf-8").splitlines())


PLANTED: dict[Key, dict[str, Any]] = {
    (one["task_id"], one["part"], one["item"]): one for one in rows("faults.jsonl")
}
SOURCES = sorted(map(str, (FAULTS / "sources").iterdir()))


class Opinions:
    """What the annotations say, where a judge is asked; words decide the rest.

    Whether an item is vague, compound or met by nothing is not told: rules alone have to see that.
    """

    def __init__(self) -> None:
        self.kinds = {(task, item): one["kind"] for (task, _, item), one in PLANTED.items()}
        self.repeated = {(one["task_id"], one["item"]): one.get("of") for one in PLANTED.values()}
        self.met = {(one["task_id"], one["item"]): set(one["systems"]) for one in rows("met.jsonl")}
        self.tasks = {one["prompt"]: one["id"] for one in rows("tasks.jsonl")}
        self.systems: dict[str, tuple[str, str]] = {}
        for one in rows("reports.jsonl"):
            for text in (one["text"], clean_report(one["text"])):
                self.systems[text] = one["task_id"], one["system"]
        self.truths = {
            (task["id"], one["text"]): one["truth"]
            for task in rows("tasks.jsonl")
            for one in task["gold"].get("drmi", {}).get("statements", [])
        }

    def __call__(self, question: Question[Any]) -> Any:
        match question:
            case ItemsHeld():
                return Held(
                    items=self.each(question.items, lambda item: self.held(self.task(question), item))
                )
            case ItemFlaws():
                return Flaws(items=self.each(question.items, lambda item: "sound"))
            case SameItem():
                wanted = self.repeated.get((self.task(question), named(question.candidate)))
                return Sameness(
                    items=self.each(
                        question.references, lambda one: "same" if named(one) == wanted else "different"
                    )
                )
            case SameClaim() | SameSubtask():
                return Sameness(items=most_like(question.candidate, question.references))
        return self.verdict(question) or question.lexical() or "judge_unsupported"

    def verdict(self, question: Question[Any]) -> Any:
        """Whether the report in the context meets the items."""
        match question:
            case Recall():
                return Recalled(
                    recalled=self.each(question.insights, lambda one: float(self.meets(question, one)))
                )
            case ChecklistMet():
                return Met(met=self.each(question.requirements, lambda one: self.meets(question, one)))
            case RubricPoints():
                ordered = sorted(question.values, key=abs)
                return PointsGiven(points=ordered[-1 if self.meets(question, question.criterion) else 0])
            case PairMarks():
                criteria = [named(one.partition(" | ")[2]) for one in question.criteria]
                marks = (Pair(a=8.0 if self.meets(question, one) else 3.0, b=5.0) for one in criteria)
                return MarkedPair(items=dict(zip(numbered(len(criteria)), marks, strict=True)))
            case LabelStatements():
                return Labels(items=self.each(question.statements, lambda one: self.label(question, one)))
        return None

    def held(self, task: str, item: str) -> str:
        item = named(item)
        kind, truth = self.kinds.get((task, item), ""), self.truths.get((task, item))
        if kind == "unsupported":
            return "absent"
        contradicted = kind == "wrong_figure" or (truth is not None and truth == (kind == "mislabelled"))
        return "contradicted" if contradicted else "held"

    def label(self, question: LabelStatements, item: str) -> str:
        if not self.meets(question, item):
            return "not_stated"
        return "true" if self.truths[self.reported(question)[0], item] else "false"

    def meets(self, question: Question[Any], item: str) -> bool:
        task, system = self.reported(question)
        return system in self.met.get((task, item), ())

    def reported(self, question: Question[Any]) -> tuple[str, str]:
        texts = [
            section.text for section in question.context.sections if section.name in ("report", "article_a")
        ]
        return self.systems.get(texts[0], ("", ""))

    def task(self, question: Question[Any]) -> str:
        return self.tasks[question.context["task"]]

    @staticmethod
    def each(items: tuple[str, ...], verdict: Callable[[str], Any]) -> dict[str, Any]:
        return dict(zip(numbered(len(items)), map(verdict, items), strict=True))


def named(text: str) -> str:
    """An item without its explanation, as annotations name it."""
    return text if text.partition(": ")[0] not in NAMES else text.partition(": ")[0]


NAMES = {
    one["criterion"]
    for task in rows("tasks.jsonl")
    for several in task["gold"].get("race", {}).get("criterions", {}).values()
    for one in several
}


def most_like(candidate: str, references: tuple[str, ...]) -> dict[str, str]:
    """The reference that shares most words with the candidate is the same, if it shares half of them."""
    words = terms(candidate)
    shares = [coverage(words, set(terms(one))) for one in references]
    best = max(range(len(shares)), key=shares.__getitem__)
    same = ["same" if place == best and shares[best] >= 0.5 else "different" for place in range(len(shares))]
    return dict(zip(numbered(len(same)), same, strict=True))


def items() -> set[Key]:
    found: set[Key] = set()
    for task in msgspec.json.decode(
        b"[" + b",".join((FAULTS / "tasks.jsonl").read_bytes().splitlines()) + b"]", type=list[dict[str, Any]]
    ):
        (protocol,) = task["gold"]
        found |= {(task["id"], part, item) for part, item in named_items(protocol, task["gold"][protocol])}
    return found


def named_items(protocol: str, gold: Any) -> Iterator[tuple[str, str]]:
    """Every item of a gold by hand, not by the code that is tested."""
    if protocol == "race":
        yield from (
            (part, one["criterion"]) for part, several in gold["criterions"].items() for one in several
        )
    elif protocol == "dr3":
        yield from (("insights", one) for one in gold["insights"]["user_files"])
        yield from (("checklist", one) for one in gold["checklist"])
    elif protocol == "rubrics":
        yield from (("rubrics", one["criterion"]) for one in gold)
    elif protocol == "rigorous":
        yield from ((part, one) for part in ("qsr", "fak", "fdk") for one in gold[part])
    elif protocol == "livedr":
        yield from (("claims", one["claim"]) for one in gold["ground_truths"])
    else:
        yield from (("statements", one["text"]) for one in gold["statements"])
        yield from (("plan", one) for one in gold["plan"])


class Figures:
    """How many planted faults of each kind were found for what they are, and which sound items were flagged."""

    def __init__(self, found: GoldCheck) -> None:
        flagged: dict[Key, set[str]] = defaultdict(set)
        for one in found.problems:
            flagged[one.task_id, one.part, one.item].add(one.problem)
        self.planted = Counter(one["kind"] for one in PLANTED.values())
        self.found = Counter(
            one["kind"] for key, one in PLANTED.items() if flagged.get(key, set()) & SAYS[one["kind"]]
        )
        sound = items() - set(PLANTED)
        self.sound = len(sound)
        self.alarms = sorted(key for key in flagged if key in sound or (key not in PLANTED and not key[2]))

    def kinds(self, share: float = 0.75) -> list[str]:
        """The kinds of which at least this share was found."""
        return [kind for kind, count in self.planted.items() if self.found[kind] >= share * count]

    def __str__(self) -> str:
        lines = [f"{kind}: {self.found[kind]} of {count}" for kind, count in sorted(self.planted.items())]
        lines.append(f"false alarms: {len(self.alarms)} of {self.sound} sound items: {self.alarms}")
        return "\n".join(lines)


@pytest.fixture
def opinions(monkeypatch: pytest.MonkeyPatch) -> Opinions:
    made = Opinions()
    monkeypatch.setattr(
        "adjudge.engine.evaluation.assembly.make_judge", lambda *_: ScriptedJudge(made, name="annotations")
    )
    return made


def judged(folder: Path) -> str:
    """A run of the five systems; its folder."""
    config = RunConfig.of(
        {
            "tasks": str(FAULTS / "tasks.jsonl"),
            "reports": [str(FAULTS / "reports.jsonl")],
            "protocols": PROTOCOLS,
            "fetch": {"mode": "off"},
            "store": str(folder / "store"),
            "out": str(folder / "run"),
        }
    )
    evaluate(config)
    return config.out


def test_gold_check_finds_faults_by_words_alone(tmp_path: Path) -> None:
    """Without any opinion: the embedded judge has none."""
    config = check_config(str(FAULTS / "tasks.jsonl"), store=str(tmp_path / "store"))
    figures = Figures(check_gold(config, SOURCES))
    print(f"\nby words alone\n{figures}")
    assert set(figures.planted) - RESTS_ON_OPINION <= set(figures.kinds())
    assert len(figures.alarms) <= 0.05 * figures.sound


def test_gold_check_finds_nine_of_ten_kinds(tmp_path: Path, opinions: Opinions) -> None:
    run = judged(tmp_path)
    config = check_config(str(FAULTS / "tasks.jsonl"), store=str(tmp_path / "store"))
    figures = Figures(check_gold(config, SOURCES, run))
    print(f"\nwith opinions and a run of five systems\n{figures}")
    assert len(figures.planted) >= 10
    assert len(figures.kinds()) >= 0.9 * len(figures.planted)
    assert figures.sound >= 60
    assert len(figures.alarms) <= 0.05 * figures.sound


SOUND = {
    "id": "tides",
    "prompt": "Compare tidal barrages and tidal turbines by cost and by effect on fish. Name two plants in use.",
    "gold": {
        "rubrics": [
            {"criterion": "Gives the cost per kilowatt-hour of a tidal barrage.", "points": 2},
            {"criterion": "Names two plants that are in use.", "points": 1},
            {"criterion": "Recommends barrages without mentioning fish.", "points": -2},
        ]
    },
}


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    file = tmp_path / "gold.jsonl"
    file.write_text(json.dumps(SOUND) + "\n")
    return file


def test_gold_check_of_a_file_needs_no_configuration(sound: Path, capsys: Any) -> None:
    store = sound.parent / "store"
    code, printed, said = run_command(capsys, "gold", "--check", sound, "--store", store, "--json")
    found = json.loads(printed)
    assert (code, said, found["problems"], found["items"], found["tasks"]) == (0, "", [], 3, 1)
    code, printed, _ = run_command(capsys, "gold", "--check", FAULTS / "tasks.jsonl", "--store", store)
    assert code == 3
    for words in ("met_by_nothing", "asks for several things at once", "pass --from: "):
        assert words in printed


def test_gold_check_of_a_configuration(sound: Path, capsys: Any) -> None:
    config = sound.parent / "adjudge.yaml"
    config.write_text("tasks: gold.jsonl\njudge: lexical\nstore: store\n")
    code, printed, _ = run_command(capsys, "gold", config, "--protocol", "rubrics", "--check", "--json")
    assert (code, json.loads(printed)["items"]) == (0, 3)
    code, _, said = run_command(capsys, "gold", config, "--protocol", "fact", "--check")
    assert code == 2 and "fact has no gold with items to check" in said
    code, _, said = run_command(capsys, "gold", config, "--check")
    assert code == 2 and "--protocol: missing" in said
    code, _, said = run_command(capsys, "gold")
    assert code == 2 and "no configuration" in said
    code, _, said = run_command(capsys, "gold", config, "--protocol", "rubrics")
    assert code == 2 and "--out: missing" in said
    code, _, said = run_command(capsys, "gold", config, "--protocol", "rubrics", "--out", "x", "--run", "y")
    assert code == 2 and "needs --check" in said
    bare = sound.parent / "bare.jsonl"
    bare.write_text(json.dumps({"id": "1", "prompt": "Why?"}) + "\n")
    code, _, said = run_command(capsys, "gold", "--check", bare)
    assert code == 2 and "has no gold with items to check" in said


def test_gold_check_counts_questions_without_an_answer(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "adjudge.engine.evaluation.assembly.make_judge", lambda *_: ScriptedJudge(lambda _: "judge_timeout")
    )
    found = check_gold(check_config(str(sound), store=str(sound.parent / "store")))
    assert found.problems == () and not found.is_clean
    # Held, flaws, the two items that have an earlier one, and the report that says nothing.
    assert found.unanswered == {"judge_timeout": 5}


def test_gold_that_cannot_be_read_is_named(sound: Path) -> None:
    broken = {**SOUND, "id": "broken", "gold": {"rubrics": [{"criterion": " ", "points": 1}]}}
    sound.write_text(json.dumps(SOUND) + "\n" + json.dumps(broken) + "\n")
    found = check_gold(check_config(str(sound), store=str(sound.parent / "store")))
    assert found.items == 3 and len(found.unreadable) == 1 and "task broken" in found.unreadable[0]


def test_report_that_says_nothing_is_put_before_the_judge(
    sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An item that the judge gives points for silence is found, whatever its words."""

    def generous(question: Question[Any]) -> Any:
        if isinstance(question, RubricPoints) and "two plants" in question.criterion:
            return PointsGiven(points=max(question.values))
        return question.lexical()

    monkeypatch.setattr("adjudge.engine.evaluation.assembly.make_judge", lambda *_: ScriptedJudge(generous))
    (problem,) = check_gold(check_config(str(sound), store=str(sound.parent / "store"))).problems
    assert (problem.item, problem.problem) == ("Names two plants that are in use.", "met_by_nothing")


def test_passage_stands_in_a_text_however_it_is_typed() -> None:
    text = "He said:\n  “The   trial – of 2021 –\nwas not blinded.”"
    assert holds(text, '"the trial - of 2021 - was not blinded."')
    assert not holds(text, "the trial was blinded") and not holds(text, " ")


@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 0.5, 1.0, np.nan]), min_size=6, max_size=6), min_size=2, max_size=6
    )
)
def test_item_figures_agree_with_scipy(values: list[list[float]]) -> None:
    found = item_figures(values)
    table = np.array(values)
    for place, row in enumerate(table):
        others = np.delete(table, place, axis=0)
        known = ~np.isnan(others)
        count = known.sum(axis=0)
        rest = np.where(count > 0, np.where(known, others, 0).sum(axis=0) / np.maximum(count, 1), np.nan)
        used = ~np.isnan(row) & ~np.isnan(rest)
        x, y = row[used], rest[used]
        if used.sum() < 3 or np.ptp(x) < 1e-9 or np.ptp(y) < 1e-9:
            assert np.isnan(found.correlation[place])
            continue
        expected = stats.pearsonr(x, y, alternative="less")
        assert found.correlation[place] == pytest.approx(expected.statistic, abs=1e-9)
        assert found.p_negative[place] == pytest.approx(expected.pvalue, abs=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "Compares the two methods and explains which one is cheaper.",
        "States the dose, the route and the duration of the treatment.",
        "Says that no study covers children.",
        "Lists at least three risks, with the likelihood of each.",
        "Gives a clear definition of blended finance.",
        "Does the report say when the dam was not in use? Yes=2, No=0",
        "说明尚无定论的两个问题。",
    ],
)
def test_sound_wordings_have_no_flaw(text: str) -> None:
    assert flaw(text) is None


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Presents the relevant information clearly.", "vague"),
        ("Is the analysis thorough and coherent? Yes=1, No=0", "vague"),
        ("Defines the term, lists its uses, compares two tools and cites a survey.", "compound"),
        ("The report never mentions brand names.", "met_by_nothing"),
        ("Keeps under ten pages.", "met_by_nothing"),
        ("避免使用网络流行语。", "met_by_nothing"),
    ],
)
def test_flawed_wordings_are_found(text: str, wrong: str) -> None:
    assert flaw(text) == wrong


def test_commands_of_the_page_on_gold_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """docs/gold.md, typed in its order; a run is evaluated in between, as it says."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```\w*\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    drafts, checks, frozen = blocks
    Path("tasks.jsonl").write_text(json.dumps({name: SOUND[name] for name in ("id", "prompt")}) + "\n")
    Path("review.md").write_text((FAULTS / "sources" / "review.txt").read_text(encoding="utf-8"))
    reports = [
        {"task_id": "tides", "system": system, "text": f"Barrages cost more than turbines. {system}"}
        for system in "AB"
    ]
    Path("reports.jsonl").write_text("".join(json.dumps(one) + "\n" for one in reports))
    settings = "reports: [reports.jsonl]\njudge: lexical\nout: runs/first\n"
    Path("adjudge.yaml").write_text(f"tasks: tasks.jsonl\n{settings}")
    for line in drafts.splitlines():
        code, printed, _ = run_command(capsys, *shlex.split(line)[1:])
        assert code == 0 and "Review and edit it" in printed, line
    Path("frozen.yaml").write_text(f"{frozen}protocols: [rubrics]\n{settings}")
    assert run_command(capsys, "evaluate", "frozen.yaml")[0] == 0
    for line in checks.splitlines():
        code, printed, said = run_command(capsys, *shlex.split(line)[1:])
        assert code in (0, 3) and printed and not said, line
        assert ("How items separate" in printed) == ("--run" in line)
