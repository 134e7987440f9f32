"""DR3-Eval: how reports cite a sandbox, chunks, the arithmetic, and a case from report to scorecard."""

import asyncio
import base64
import json
import math
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.reward import Formula, RewardConfig
from adjudge.engine.config.run import RunConfig
from adjudge.judges import Context, LexicalJudge, Media, Reply, ScriptedJudge
from adjudge.judges.chat import content_parts
from adjudge.scoring.contract.case import Case, Citation, Report, Task
from adjudge.scoring.contract.protocol import score_case
from adjudge.scoring.contract.reasons import CAUSES
from adjudge.scoring.contract.scorecard import Bounds
from adjudge.scoring.dr3_eval import dr3
from adjudge.scoring.dr3_eval.citing import Labels, _Reader, leniently_equal
from adjudge.scoring.dr3_eval.dr3 import DR3, Depth, DepthQuality
from adjudge.scoring.dr3_eval.questions import (
    Checklist,
    ChecklistMet,
    ChecklistOf,
    Grounded,
    Insights,
    InsightsOf,
    Met,
    Recall,
    Recalled,
    Verdicts,
)
from adjudge.scoring.dr3_eval.sandbox import Sandbox, Source
from adjudge.scoring.text import relevance
from adjudge.scoring.text.aside import open_workers
from adjudge.scoring.text.relevance import relevant_chunks
from tests.examples import shipped
from tests.tools import DirectTools

EXAMPLE = shipped("dr3")

PIXEL = Media("chart.png", "image/png", base64.b64encode(b"\x89PNG fake").decode())

SOURCES = (
    Source(name="plan.pdf", text="The budget is 5 million euros in 2024."),
    Source(name="chart.png", media=PIXEL),
    Source(
        title="A Study of Costs", url="https://a.org/costs?x=1", text="Costs fell by 8%.", role="supportive"
    ),
    Source(title="Old figures", url="https://b.org/old", text="Costs rose by 3%.", role="distractor"),
    Source(title="Recipes", url="https://c.org/cakes", text="Bake it.", role="noise"),
)

TEXT = """# Costs

The budget is 5 million euros [Doc: plan.pdf, Page 2]. Costs fell by 8% [long_context: "A Study of Costs", chunk 1][2].
Costs rose in Iceland [Doc: none.pdf]. The region employed 700 people in 2019.

## References
[2] Old figures. https://b.org/old
"""

GOLD = {
    "user_files": json.loads(msgspec.json.encode(SOURCES[:2])),
    "corpus": json.loads(msgspec.json.encode(SOURCES[2:])),
    "insights": {"user_files": ["Budget 5 million", "Chart shows growth"], "corpus": ["Costs fell 8%"]},
    "checklist": ["States the budget", "Names a year", "Is in English"],
    "corpus_size": "64k",
}


def case(gold=GOLD, text=TEXT, language="en", **fields):
    golds = {} if gold is None else {"dr3": msgspec.Raw(json.dumps(gold).encode())}
    task = Task(id="1", prompt="Write about the costs. Name a year.", language=language, gold=golds)
    return Case(task=task, report=Report(task_id="1", system="A", text=text, **fields))


def keyed(values):
    return {f"c{number:02d}": value for number, value in enumerate(values, 1)}


def judge(**replies):
    """Insights 1, 0.5, 1...; a claim is supported if its figure is in the source; `replies` by type take precedence."""

    def opinion(question):
        name = type(question).__name__
        if name in replies:
            reply = replies[name]
            return reply(question) if callable(reply) else reply
        match question:
            case Recall():
                return Recalled(recalled=keyed([1.0, 0.5][i % 2] for i in range(question.count)))
            case InsightsOf():
                return Insights(insights=(f"of {question.context['name']}",))
            case ChecklistOf():
                return Checklist(requirements=("one", "two"))
            case ChecklistMet():
                return Met(met=keyed(i != 1 for i in range(question.count)))
            case Grounded():
                source = question.context["source"]
                found = (
                    claim.split()[-2 if claim.endswith("euros.") else -1].rstrip(".") in source
                    for claim in question.claims
                )
                return Verdicts(verdicts=keyed("supported" if one else "unsupported" for one in found))
            case DepthQuality():
                return Depth(depth=7)

    return ScriptedJudge(opinion)


class TestCitations:
    def cited(self, text, *citations):
        report = Report(task_id="1", system="A", text=text, citations=citations)
        return asyncio.run(Sandbox(SOURCES).cited(report))

    @pytest.mark.parametrize(
        ("mark", "place"),
        [
            ("[Doc: plan.pdf]", 0),
            ("[doc: PLAN.PDF, page 12]", 0),
            ("[plan.pdf]", 0),
            ("【文档：plan.pdf】", 0),
            ("([plan](files/plan.pdf))", 0),
            ("[Image: chart.png]", 1),
            ('[long_context: "A Study of Costs", chunk 3]', 2),
            ("[a study of COSTS]", 2),
            ("(https://a.org/costs?x=1)", 2),
            ("[here](https://A.org/costs?x=1#part)", 2),
            ("[A Study of Costs](https://elsewhere.org/x)", 2),
            ('[Doc: "plan.pdf"]', 0),
            ("[RAG-7]", 3),
            ("[RAG-3]", 4),
            ("(RAG-1)", 2),
            ('[source: "plan.pdf"]', 0),
            ("(Doc: plan.pdf)", 0),
            ("(Doc: plan.pdf, Page 10-15)", 0),
            ("(plan.pdf)", 0),
            ("[plan.pdf, Section 7]", 0),
            ("[document_reader: plan.pdf, section 2]", 0),
            ("[source_1: plan.pdf]", 0),
            ("[vision_understanding_advanced: chart.png, reasoning]", 1),
            ("[图片: chart.png]", 1),
            ("[chart.png, 00:15:30]", 1),
            ('[long_context: "A Study of"]', 2),
            ('[long_context: "A Stu...", chunk 5-8]', 2),
            ('(long_context: "A Study of Costs", chunk 1)', 2),
            ("[Web: https://c.org/cakes]", 4),
        ],
    )
    def test_every_mark_form_finds_its_source(self, mark, place):
        cited = self.cited(
            f"The town has 700 people {mark}.", Citation(url="https://b.org/old", marker="RAG-7")
        )
        [(fact, sources)] = cited.claims
        assert fact.startswith("The town has 700 people")
        assert ([one.place for one in sources], cited.sources) == ([place], {place} | cited.sources)

    @pytest.mark.parametrize("mark", ["[Doc: other.pdf]", "[1](https://nowhere.org/x)", "[RAG: 12]"])
    def test_source_outside_the_sandbox_is_cited_but_not_found(self, mark):
        [(_, [source])] = self.cited(f"The town has 700 people {mark}.").claims
        assert (source.place, source.lenient) == (None, None)

    @pytest.mark.parametrize(
        "text",
        [
            "He said [sic] that it is so.",
            "An interval [0, 1] of numbers is meant.",
            "No mark.",
            "It rose (see above: costs) and fell (again).",
            "It is old (Old figures).",
        ],
    )
    def test_other_brackets_are_not_citations(self, text):
        assert self.cited(text).claims == ()

    @pytest.mark.parametrize(
        ("title", "said"),
        [
            ("【公告】Harbour dues", '"【公告】Harbour dues", chunk 0'),
            ("Ports [revised] of the shore", '"Ports [revised] of the shore"'),
            ("Ports [revised] of the shore", "Ports [revised] of the shore, chunk 2"),
            ("Ports & piers", "Ports &amp; piers"),
            ("Ports &amp; piers", '"Ports & piers", chunk 1'),
        ],
    )
    def test_title_may_hold_brackets_and_entities(self, title, said):
        source = Source(text="Boats pay.", title=title, name="")
        report = Report(task_id="1", system="A", text=f"Boats pay [see it] [long_context: {said}].")
        cited = asyncio.run(Sandbox((source,)).cited(report))
        [(fact, [found])] = cited.claims
        assert fact.startswith("Boats pay") and found.place == 0

    @pytest.mark.parametrize(
        "text",
        [
            "## Costs [Doc: plan.pdf]\n\n## Next\n\nNothing is cited.",
            "- [Doc: plan.pdf]\n",
            "| Source | Year |\n|---|---|\n| [Doc: plan.pdf] | |\n",
        ],
    )
    def test_source_without_a_statement_is_covered_and_no_claim(self, text):
        cited = self.cited(text)
        assert (cited.claims, cited.sources) == ((), {0})

    def test_mark_after_a_full_stop_belongs_to_the_sentence_before(self):
        [(fact, [source])] = self.cited("Budgets grew fast. [Doc: plan.pdf] Costs fell slowly.").claims
        assert (fact, source.place) == ("Budgets grew fast.", 0)

    def test_references_without_an_address_are_found_by_title(self):
        cited = self.cited("Costs were high [1].\n\n## References\n[1] Old figures\n")
        assert [source.place for source in cited.claims[0][1]] == [3]

    def test_report_cannot_forge_a_url(self):
        """Neither an internal address made for another report nor one without a source counts."""
        seen = _Reader("Another report.", (), Labels(()))
        for place in (0, 777):
            forged = seen._address(place)
            citation = Citation(url=forged, marker="RAG-1")
            cited = self.cited(f"Costs were high ({forged}). They fell [1]({forged}) [RAG-1].", citation)
            assert cited.claims
            assert {source.place for _, sources in cited.claims for source in sources} == {None}
            assert cited.sources == frozenset()

    @given(st.text(alphabet="[]()【】: ,.Dochtps/planpdf\n1", max_size=300))
    def test_any_report_is_parsed(self, text):
        for _, sources in self.cited(text).claims:
            assert all(one.place is None or 0 <= one.place < len(SOURCES) for one in sources)

    def test_several_sources_in_one_bracket_are_all_cited(self):
        [(_, sources)] = self.cited("Costs rose [RAG-1, RAG-2] again.").claims
        assert [one.place for one in sources] == [2, 3]
        [(_, sources)] = self.cited("Costs rose [Doc: plan.pdf; Image: chart.png].").claims
        assert [one.place for one in sources] == [0, 1]

    def test_unknown_name_may_be_a_source_by_lenient_matching(self):
        [(_, [source])] = self.cited("Costs rose [Doc: the plan.pdf file].").claims
        assert (source.place, source.lenient) == (None, 0)

    def test_coverage_may_be_ours_or_the_code_s(self):
        sandbox = Sandbox(SOURCES)
        text = "Costs fell [Doc: the plan.pdf file]. More of it [Web: Study of the Costs, A]."
        report = Report(task_id="1", system="a", text=text)
        assert sandbox.titles == ("A Study of Costs", "plan.pdf")  # no picture
        assert sandbox.coverage(self.cited(text)) == 0
        assert asyncio.run(sandbox.code_coverage(report)) == 1
        assert Sandbox(SOURCES[3:]).coverage(self.cited(text)) is None
        assert asyncio.run(Sandbox(SOURCES[3:]).code_coverage(report)) is None

    @pytest.mark.parametrize(
        ("one", "other", "equal"),
        [
            ("Annual report", "The annual report of 2020", True),
            ("Cost of living in Norway", "Living costs Norway cost", True),
            ("Oil", "Soil", False),
            ("", "", False),
            ("能源报告", "2024年能源报告全文", True),
            ("Wind power", "Solar power", False),
        ],
    )
    def test_lenient_equality_compares_words(self, one, other, equal):
        assert leniently_equal(one, other) is leniently_equal(other, one) is equal


class TestChunks:
    def test_short_text_is_shown_whole(self):
        assert relevant_chunks("x" * 2500, "y") == "x" * 2500

    def test_words_of_a_short_text_are_never_counted(self, monkeypatch):
        monkeypatch.setattr(relevance, "terms", None)
        assert relevant_chunks("x" * 30_000, "y", 20, 1_500) == "x" * 30_000

    def test_best_five_chunks_keep_their_order(self):
        pieces = [
            f"{word:*<500}" for word in ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
        ]
        chosen = relevant_chunks("".join(pieces), "theta beta delta")
        found = chosen.split("\n[...]\n")
        assert len(found) == 5
        assert {pieces[1], pieces[3], pieces[7]} <= set(found)
        assert found == sorted(found, key=pieces.index)

    @given(
        st.lists(st.text("abc ", min_size=8, max_size=8), min_size=4, max_size=12),
        st.text("abc ", max_size=8),
    )
    def test_chunks_are_ranked_by_bm25(self, pieces, query):
        pieces = [
            " ".join(f"word{letter}" for letter in piece if letter != " ").ljust(60) for piece in pieces
        ]
        wanted = {f"word{letter}" for letter in query if letter != " "}
        held = [piece.split() for piece in pieces]
        mean = sum(map(len, held)) / len(held) or 1

        def bm25(words):
            parts = []
            for word in wanted & set(words):
                holding, count = sum(word in other for other in held), words.count(word)
                rarity = math.log(1 + (len(held) - holding + 0.5) / (holding + 0.5))
                parts.append(rarity * count * 2.5 / (count + 1.5 * (0.25 + 0.75 * len(words) / mean)))
            return round(math.fsum(parts), 9)

        order = sorted(range(len(pieces)), key=lambda place: (-bm25(held[place]), place))[:3]
        chosen = relevant_chunks("".join(pieces), " ".join(sorted(wanted)), count=3, size=60)
        assert chosen == "\n[...]\n".join(pieces[place] for place in sorted(order))

    @given(st.text(max_size=200), st.integers(0, 30))
    def test_at_most_five_chunks_are_shown(self, query, repeats):
        assert len(relevant_chunks("Some words of a text. " * 30 * repeats, query)) <= 5 * 500 + 4 * 7 + 1


class TestArithmetic:
    def test_only_full_recall_counts(self):
        assert dr3.information_recall([1, 0.5, 0, 1]) == 0.5
        assert dr3.information_recall([]) is None

    def test_claim_and_pair_accuracy_differ(self):
        claims = [[True, False], [True], []]
        assert dr3.claim_accuracy(claims) == pytest.approx(1 / 3)
        assert dr3.pair_accuracy([True, False, True]) == pytest.approx(2 / 3)
        assert dr3.pair_accuracy([]) == 0


class TestScore:
    async def test_case_by_hand_gives_the_expected_scores(self):
        tools = DirectTools(judge())
        card = await score_case(DR3(), case(), tools)
        assert card.status == "scored"
        # Pairs: plan backs its claim; the study backs 8%, the old figures do not; none.pdf backs nothing.
        fa, fa_claims = 2 / 4, 1 / 3
        expected = {
            "ir_uf": 0.5,
            "ir_sc": 1,
            "ir": 0.75,
            "cc": 2 / 3,
            "cc_lenient": 1,
            "fa": fa,
            "fa_claims": fa_claims,
            "fa_lenient": fa_claims,
            "if": 2 / 3,
            "dq": 0.7,
            "average": (0.5 + 1 + 2 / 3 + fa + 2 / 3 + 0.7) / 6,
            "average_code": (0.75 + 1 + fa_claims + 2 / 3 + 0.7) / 5,
            "average:64k": (0.5 + 1 + 2 / 3 + fa + 2 / 3 + 0.7) / 6,
            "cited": 2,
            "cited:supportive": 1,
            "pairs:supportive": 1,
            "supported:supportive": 1,
            "cited:distractor": 1,
            "pairs:distractor": 1,
            "supported:distractor": 0,
            "cited:noise": 0,
            "pairs:noise": 0,
            "supported:noise": 0,
        }
        assert card.scores == {name: pytest.approx(value) for name, value in expected.items()}
        listed = {metric.name for metric in DR3().metrics_of(case()) if metric.ratio is None}
        assert set(card.scores) == listed
        assert listed <= {metric.name for metric in DR3().metrics}

    async def test_questions_about_the_report_share_its_context(self):
        tools = DirectTools(judge())
        await score_case(DR3(), case(), tools)
        about = [q for q in tools.questions if not isinstance(q, Grounded)]
        assert {type(q) for q in about} == {Recall, ChecklistMet, DepthQuality}
        assert len({q.context.digest for q in about}) == 1
        assert {q.task for q in about if isinstance(q, DepthQuality | Recall)} == {case().task.prompt}

    async def test_judge_finds_missing_insights_and_checklist(self):
        gold = GOLD | {"insights": {}, "checklist": []}
        tools = DirectTools(judge())
        card = await score_case(DR3(), case(gold), tools)
        asked = [q for q in tools.questions if isinstance(q, InsightsOf)]
        assert [q.context["name"] for q in asked] == ["plan.pdf", "chart.png", "A Study of Costs"]
        assert asked[1].context.media == (PIXEL,)
        [recall, other] = [q for q in tools.questions if isinstance(q, Recall)]
        assert {recall.insights, other.insights} == {
            ("of plan.pdf", "of chart.png"),
            ("of A Study of Costs",),
        }
        assert card.scores["if"] == 0.5
        again = DirectTools(judge())
        await score_case(DR3(), case(gold, text="Another report of another system."), again)
        assert [q.identity() for q in again.questions if isinstance(q, InsightsOf)] == [
            q.identity() for q in asked
        ]

    async def test_task_without_a_corpus_omits_its_columns(self):
        gold = {
            "user_files": GOLD["user_files"],
            "insights": GOLD["insights"] | {"corpus": []},
            "checklist": ["x"],
        }
        card = await score_case(DR3(), case(gold), DirectTools(judge()))
        assert "ir_sc" not in card.scores
        assert "average:64k" not in card.scores
        parts = [card.scores[name] for name in ("ir_uf", "cc", "fa", "if", "dq")]
        assert card.scores["average"] == pytest.approx(sum(parts) / 5)
        assert set(card.scores) == {m.name for m in DR3().metrics_of(case(gold)) if m.ratio is None}

    async def test_long_sources_are_shown_by_their_best_chunks(self):
        long = {
            "name": "long.txt",
            "text": "Nothing here. " * 3000 + "Output was 42 tons. " + "Nothing here. " * 3000,
        }
        gold = {"user_files": [long], "insights": {"user_files": ["x"]}, "checklist": ["x"]}
        tools = DirectTools(judge())
        text = "Output was 42 tons [Doc: long.txt]. Output was 43 tons [Doc: long.txt]."
        await score_case(DR3(), case(gold, text=text), tools)
        grounded = [q for q in tools.questions if isinstance(q, Grounded)]
        assert [len(q.claims) for q in grounded] == [1, 1]
        assert all("42 tons" in q.context["source"] and len(q.context["source"]) < 2600 for q in grounded)

    async def test_source_beyond_the_window_is_shown_by_its_best_chunks(self):
        gold = {
            "user_files": [
                {"name": "a.txt", "text": "Nothing here. " * 500 + "Output was 42 tons. " + "Nothing. " * 500}
            ],
            "insights": {"user_files": ["x"]},
            "checklist": ["x"],
        }

        def grounded(question):
            source = question.context["source"]
            if len(source) > 5_000:
                return "context_overflow"
            return Verdicts(
                verdicts=keyed("supported" if "42" in c else "unsupported" for c in question.claims)
            )

        tools = DirectTools(judge(Grounded=grounded))
        text = "Output was 42 tons [Doc: a.txt]. Output was 43 tons [Doc: a.txt]."
        card = await score_case(DR3(), case(gold, text=text), tools)
        asked = [q for q in tools.questions if isinstance(q, Grounded)]
        assert [len(q.claims) for q in asked] == [2, 1, 1]
        assert all("42 tons" in q.context["source"] for q in asked)
        assert (card.scores["fa"], card.reason) == (0.5, None)

    async def test_only_the_oversized_question_is_asked_by_chunks(self):
        text = "\n\n".join(f"Item number {n} costs {n} euros [Doc: plan.pdf]." for n in range(25))

        def grounded(question):
            whole = len(question.claims) == 5
            verdict = "supported" if len(question.claims) == 20 else "unsupported"
            return "context_overflow" if whole else Verdicts(verdicts=keyed([verdict] * question.count))

        tools = DirectTools(judge(Grounded=grounded))
        card = await score_case(DR3(), case(text=text), tools)
        assert sorted(len(q.claims) for q in tools.questions if isinstance(q, Grounded)) == [1] * 5 + [5, 20]
        assert card.scores["fa"] == 20 / 25

    async def test_evidence_lists_what_was_met_and_supported(self):
        card = await score_case(DR3(), case(), DirectTools(judge()))
        found = Counter(line.outcome.words for line in card.evidence)
        assert (found["met"], found["not met"]) == (2, 1)
        assert (found["supported"], found["unsupported"]) == (2, 2)

    async def test_titles_come_from_the_list_and_separate_citations(self):
        cited = await Sandbox(SOURCES).cited(
            Report(
                task_id="1",
                system="A",
                text="Costs fell [1].\n\n## References\n[1] A Study of Costs. https://elsewhere.org/x",
                citations=(Citation(url="https://other.org/y", title="Cakes of the world"),),
            )
        )
        assert cited.sources == {2}

    async def test_45_claims_of_one_source_are_three_questions(self):
        text = "\n\n".join(f"Item number {n} costs {n} euros [Doc: plan.pdf]." for n in range(45))
        tools = DirectTools(judge())
        await score_case(DR3(), case(text=text), tools)
        assert sorted(len(q.claims) for q in tools.questions if isinstance(q, Grounded)) == [5, 20, 20]

    async def test_report_without_citations_has_zero_accuracy(self):
        card = await score_case(DR3(), case(text="Costs fell by 8%."), DirectTools(judge()))
        assert (card.scores["fa"], card.scores["cc"], card.scores["fa_claims"]) == (0, 0, 0)

    async def test_lenient_accuracy_counts_sources_found_leniently(self):
        text = "The budget is 5 million euros [Doc: the plan.pdf file]."
        card = await score_case(DR3(), case(text=text), DirectTools(judge()))
        assert (card.scores["fa"], card.scores["fa_claims"], card.scores["fa_lenient"]) == (0, 0, 1)

    async def test_long_report_is_read_in_another_process(self):
        """What is read there is what is read here."""
        report = Report(task_id="1", system="A", text="Item 7 costs 7 euros [Doc: plan.pdf]. " * 2_000)
        here = await Sandbox(SOURCES).cited(report)
        async with open_workers():
            assert await Sandbox(SOURCES).cited(report) == here
        assert len(here.claims) > 1_000

    async def test_empty_report_gets_the_minimum(self):
        card = await score_case(DR3(), case(text=" "), DirectTools(judge()))
        assert set(card.scores.values()) == {0}
        assert (card.status, card.reason) == ("scored", "report_empty")

    @pytest.mark.parametrize(
        ("gold", "reason"), [(None, "gold_missing"), ({"corpus": [{"role": "x"}]}, "gold_invalid")]
    )
    async def test_invalid_gold_leaves_the_case_unscored(self, gold, reason):
        card = await score_case(DR3(), case(gold), DirectTools(judge()))
        assert set(card.reasons.values()) == {reason}

    async def test_lexical_judge_answers_all_but_depth_and_pictures(self):
        text = TEXT.replace("[Doc: none.pdf]", "[Image: chart.png]")
        card = await score_case(DR3(), case(GOLD | {"checklist": []}, text=text), DirectTools(LexicalJudge()))
        assert {name for name, value in card.scores.items() if value is None} == {
            "average",
            "average_code",
            "average:64k",
            "fa",
            "fa_claims",
            "fa_lenient",
            "dq",
        }
        assert set(card.reasons.values()) == {"judge_unsupported"}
        assert card.scores["ir_sc"] == 1


class TestGold:
    def test_recall_exists_only_where_there_is_a_source(self):
        page = Source(title="A page", url="https://a.org", text="It rains.", role="noise")
        assert dr3.Gold(corpus=(page,)).recalls == ()
        assert dr3.Gold(corpus=(msgspec.structs.replace(page, role="supportive"),)).recalls == ("ir_sc",)
        assert dr3.Gold(user_files=(page,)).recalls == ("ir_uf",)


class TestMedia:
    def test_picture_travels_as_a_content_part(self):
        [picture, text] = content_parts(SOURCES[1].context(), "words")
        assert picture == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL.data}"}}
        assert text == {"type": "text", "text": "words"}

    def test_sound_and_video_become_content_parts(self):
        context = Context.of(
            Media("a.wav", "audio/wav", "AA=="), Media("b.mp4", "video/mp4", "BB=="), source=""
        )
        sound, film, _ = content_parts(context, "")
        assert sound == {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
        assert film["video_url"]["url"] == "data:video/mp4;base64,BB=="
        assert context.digest != Context.of(source="").digest

    async def test_text_only_judge_leaves_picture_metrics_unscored(self):
        text = TEXT.replace("[Doc: none.pdf]", "[Image: chart.png]")
        blind = judge(
            Grounded=lambda q: (
                "media_unsupported" if q.context.media else Verdicts(verdicts=keyed(["supported"] * q.count))
            )
        )
        card = await score_case(DR3(min_answered=0.5), case(text=text), DirectTools(blind))
        lacking = {
            name: card.bounds[name].parts - card.bounds[name].answered
            for name in ("fa", "fa_claims", "fa_lenient")
        }
        assert lacking == {"fa": 1, "fa_claims": 1, "fa_lenient": 1}
        assert (card.scores["fa"], card.scores["cc"]) == (1, 1)
        assert card.bounds["fa"].low == 0.75
        assert CAUSES["media_unsupported"] == "infrastructure"

    async def test_unreadable_file_is_not_judged(self):
        gold = GOLD | {"user_files": [{"name": "plan.pdf"}]}
        tools = DirectTools(judge())
        card = await score_case(DR3(), case(gold), tools)
        assert card.bounds["fa"].answered < card.bounds["fa"].parts
        assert "media_unsupported" in {line.reason for line in card.evidence}
        assert all(q.context["source"] for q in tools.questions if isinstance(q, Grounded))


NEEDS = {
    "Recall": {"ir_uf", "ir_sc", "ir"},
    "Grounded": {"fa", "fa_claims", "fa_lenient", "supported:supportive", "supported:distractor"},
    "ChecklistMet": {"if"},
    "DepthQuality": {"dq"},
}


class TestMissing:
    @pytest.mark.parametrize("kind", NEEDS)
    @pytest.mark.parametrize(
        ("reply", "reason"),
        [
            ('{"analysis": "', "judge_unparseable"),
            (
                '{"depth": "7", "met": {"c01": 1}, "recalled": {"c01": "1"}, "verdicts": {"c01": true}}',
                "judge_unparseable",
            ),
            ('{"recalled": {"c01": 0.3}}', "judge_unparseable"),
            ('{"depth": 11}', "judge_unparseable"),
            ('{"verdicts": {"c01": "partly"}}', "judge_unparseable"),
            ("{}", "judge_unparseable"),
            ("", "judge_unparseable"),
            (Reply(reason="judge_refused", finish_reason="content_filter"), "judge_refused"),
            ("judge_timeout", "judge_timeout"),
        ],
    )
    async def test_malformed_reply_unscores_only_what_needs_it(self, kind, reply, reason):
        card = await score_case(DR3(min_answered=1), case(), DirectTools(judge(**{kind: reply})))
        unscored = {name for name, value in card.scores.items() if value is None}
        averages = {"average", "average:64k", "average_code"}
        assert unscored == NEEDS[kind] | averages
        assert set(card.reasons.values()) == {reason}
        assert CAUSES[reason] == "infrastructure"

    async def test_failed_insights_and_checklist_leave_no_average(self):
        gold = GOLD | {"insights": {}, "checklist": []}
        replies = {"InsightsOf": '{"insights": []}', "ChecklistOf": "judge_timeout"}
        card = await score_case(DR3(), case(gold), DirectTools(judge(**replies)))
        assert (card.reasons["ir_uf"], card.reasons["if"]) == ("judge_unparseable", "judge_timeout")
        assert card.scores["average"] is None

    async def test_failed_insights_give_their_reason(self):
        card = await score_case(
            DR3(), case(GOLD | {"insights": {}}), DirectTools(judge(InsightsOf="judge_timeout"))
        )
        assert (card.reasons["ir_uf"], card.reasons["ir_sc"]) == ("judge_timeout", "judge_timeout")

    @pytest.mark.parametrize("reason", ["answer_truncated", "context_overflow"])
    @pytest.mark.parametrize(("kind", "name"), [("InsightsOf", "ir_sc"), ("ChecklistOf", "if")])
    async def test_failure_by_source_or_task_is_not_blamed_on_the_report(self, kind, name, reason):
        gold = GOLD | {"insights": {}, "checklist": []}
        card = await score_case(DR3(), case(gold), DirectTools(judge(**{kind: reason})))
        assert card.scores[name] is None and CAUSES[card.reasons[name]] == "infrastructure"
        assert Formula(RewardConfig(), [DR3()]).value({"dr3": card}, {}).value is None

    async def test_average_has_bounds_where_a_part_has_no_value(self):
        card = await score_case(DR3(), case(), DirectTools(judge(DepthQuality="judge_timeout")))
        known = [card.scores[name] for name in ("ir_uf", "ir_sc", "cc", "fa", "if")]
        assert card.scores["average"] is None
        bounds = card.bounds["average"]
        assert bounds.low == pytest.approx((sum(known) + 0.1) / 6)
        assert bounds.high == pytest.approx((sum(known) + 1) / 6)
        assert bounds.parts - bounds.answered == 1

    async def test_missing_pairs_leave_the_others_and_bounds(self):
        def grounded(question):
            return (
                "judge_timeout"
                if question.context["name"] == "Old figures"
                else Verdicts(verdicts=keyed(["supported"] * question.count))
            )

        card = await score_case(DR3(min_answered=0.75), case(), DirectTools(judge(Grounded=grounded)))
        assert (card.scores["fa"], card.bounds["fa"]) == (pytest.approx(2 / 3), Bounds(0.5, 0.75, 3, 4))
        bounds = card.bounds["average"]
        assert bounds.high - bounds.low == pytest.approx(0.25 / 6)
        assert bounds.low <= card.scores["average"] <= bounds.high
        assert set(card.scores) == {m.name for m in DR3().metrics_of(case()) if m.ratio is None}

    @pytest.mark.parametrize("reason", ["answer_truncated", "context_overflow"])
    @pytest.mark.parametrize(
        ("kind", "names"),
        [
            ("Recall", ("ir_uf", "ir_sc")),
            ("ChecklistMet", ("if",)),
            ("Grounded", ("fa",)),
            ("DepthQuality", ("dq",)),
        ],
    )
    async def test_answer_cut_off_is_never_a_score(self, kind, names, reason):
        card = await score_case(DR3(), case(), DirectTools(judge(**{kind: reason})))
        missing = [card.bounds[name].parts - card.bounds[name].answered for name in names]
        assert all(missing)
        assert all(card.scores[name] is None for name in names if kind != "Grounded")

    @pytest.mark.parametrize(
        ("kind", "name", "known"), [("Recall", "ir_uf", 10.0), ("ChecklistMet", "if", 20.0)]
    )
    async def test_unanswered_batch_is_bounded_by_zero_and_full_score(self, kind, name, known):
        many = [f"point {number}" for number in range(30)]
        gold = GOLD | {"checklist": many, "insights": {"user_files": many, "corpus": ["Costs fell 8%"]}}

        def last_missing(question):
            texts = question.insights if kind == "Recall" else question.requirements
            if many[-1] in texts:
                return "judge_timeout"
            if kind == "Recall":
                return Recalled(recalled=keyed([1.0, 0.5][i % 2] for i in range(question.count)))
            return Met(met=keyed([True] * question.count))

        card = await score_case(DR3(), case(gold), DirectTools(judge(**{kind: last_missing})))
        assert card.scores[name] is None
        expected = Bounds(pytest.approx(known / 30), pytest.approx((known + 10) / 30), 20, 30)
        assert card.bounds[name] == expected

    async def test_questions_use_the_language_of_the_task(self):
        tools = DirectTools(judge())
        await score_case(DR3(), case(GOLD | {"insights": {}, "checklist": []}, language="zh"), tools)
        asked = {type(question).__name__ for question in tools.questions}
        assert asked == {*NEEDS, "InsightsOf", "ChecklistOf"}
        assert {question.language for question in tools.questions} == {"zh"}


@pytest.mark.parametrize("judge", [LexicalJudge(), judge()], ids=["lexical", "scripted"])
def test_files_become_a_leaderboard(judge, tmp_path, monkeypatch):
    monkeypatch.setattr("adjudge.engine.evaluation.assembly.make_judge", lambda *parts: judge)
    folder = {"out": str(tmp_path / "run"), "store": str(tmp_path / "store")}
    config = RunConfig.load(EXAMPLE / "adjudge.yaml", **folder)
    first, second = evaluate(config), evaluate(config)
    assert (first.scorecards, first.rejected) == (6, ())
    assert first.unscored == (6 if isinstance(judge, LexicalJudge) else 0)
    boards = {board.metric: board for board in second.leaderboard.metrics}
    assert [standing.system for standing in boards["cc"].standings] == ["merlin", "kestrel"]
    assert {"fa:distractor", "share:noise", "average:64k", "average:512k"} <= set(boards)
