"""Rigorous Bench: formulas, keywords, sources, the general rubrics, and a case from report to scorecard."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.engine.commands.evaluate import evaluate
from adjudge.engine.config.run import RunConfig
from adjudge.judges import LexicalJudge, Reply, ScriptedJudge
from adjudge.scoring.contract.case import Case, Citation, Report, ReportUsage, Task
from adjudge.scoring.contract.protocol import score_case
from adjudge.scoring.contract.reasons import CAUSES
from adjudge.scoring.rubrics import rigorous
from adjudge.scoring.rubrics.asking import PointsGiven, RubricPoints
from adjudge.scoring.rubrics.criteria import Criterion, general_rubrics, load_criteria
from adjudge.scoring.rubrics.links import (
    LinkMatch,
    annotated,
    cited_urls,
    match_links,
    match_substrings,
)
from adjudge.scoring.rubrics.rigorous import (
    DIMENSIONS,
    KeywordRelevance,
    Relevances,
    Rigorous,
    keyword_frequency,
)
from adjudge.scoring.text.citations import parse
from adjudge.scoring.text.cleaning import clean_report
from tests.examples import shipped
from tests.golds import GOLD
from tests.tools import DirectTools

EXAMPLE = shipped("rigorous")

TEXT = """# Heat pumps in cold climates

Heat pumps keep a coefficient of performance above 2 at -15 °C [1]. Heat pumps need no gas boiler
([IEA](https://www.iea.org/heat-pumps/?utm_source=x)).

## References

[1] Energy Agency, heat pumps, https://energy.gov/heat#cold
"""


USAGE = ReportUsage(
    total_tokens=3000, input_tokens=1000, retrieved=9, inference_seconds=80, retrieval_seconds=20.5
)


def case(gold=GOLD, text=TEXT, usage=USAGE):
    golds = {} if gold is None else {"rigorous": msgspec.Raw(json.dumps(gold).encode())}
    task = Task(id="1", prompt="Do heat pumps work in the cold?", gold=golds)
    return Case(task=task, report=Report(task_id="1", system="A", text=text, usage=usage))


def judge(relevance=4, **replies):
    """Full points for everything, one relevance for every keyword, or the replies of a criterion (by its start)."""

    def opinion(question):
        if isinstance(question, KeywordRelevance):
            keys = [f"c{i:02d}" for i in range(1, question.count + 1)]
            return replies.get("keywords", Relevances(relevance=dict.fromkeys(keys, relevance)))
        start = question.criterion.split()[0]
        return replies.get(start, PointsGiven(points=question.values[-1]))

    return ScriptedJudge(opinion)


class TestFormulas:
    @given(
        st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), min_size=1, max_size=8),
        st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), max_size=8),
        st.floats(0.5, 9),
    )
    def test_drift_lies_between_0_and_1(self, anchors, deviations, eps):
        drift = rigorous.semantic_drift(rigorous.fak_drift(anchors, eps), rigorous.fdk_drift(deviations, eps))
        assert 0 <= drift <= 1

    def test_variants_differ_only_in_full_matches(self):
        links = LinkMatch(trusted=3, cited=6, full=1, host=2)
        assert rigorous.trustworthy_boost(links) == pytest.approx(1 + 0.2 * (0.7 / 3 + 0.3 * 2 / 7))
        assert rigorous.trustworthy_boost(links, "algorithm") == pytest.approx(
            1 + 0.2 * (0.7 / 3 + 0.3 * 1 / 7)
        )

    def test_boost_needs_trusted_and_cited_links(self):
        assert rigorous.trustworthy_boost(match_links([], [])) == 1
        assert rigorous.trustworthy_boost(match_links(["https://a.org"], [])) == 1


class TestKeywords:
    @pytest.mark.parametrize(
        ("keyword", "text", "count"),
        [
            ("art", "Art for the party; ART, art-house", 3),
            ("heat pump", "A heat\n pump, Heat  Pump and heat pumps", 2),
            ("储能", "新型储能与储能技术", 2),
            ("QUIC", "QUIC协议和ＱＵＩＣ, quicker", 2),
            ("C++", "C++ and c++11 or C+", 1),
            ("a.b", "axb a.b", 1),
            (" ", "a b", 0),
            ("x", "", 0),
        ],
    )
    def test_keywords_count_as_words_or_substrings_by_script(self, keyword, text, count):
        assert keyword_frequency(keyword, text) == count

    def test_published_code_counts_substrings(self):
        assert keyword_frequency("art", "Art for the party; cart", "substrings") == 3

    def test_chinese_keywords_count_as_words_on_request(self):
        assert keyword_frequency("储能", "储能 储能技术", "words") == 2

    @given(st.text(max_size=40), st.text(max_size=200))
    def test_substrings_are_at_least_as_many_as_words(self, keyword, text):
        assert keyword_frequency(keyword, text, "words") <= keyword_frequency(keyword, text, "substrings")


class TestLinks:
    def test_links_ignore_query_fragment_www_and_slash_by_default(self):
        cited = ["https://www.a.org/x/?q=1#z", "https://a.org/x", "HTTPS://A.org/x#y", "http://b.org"]
        assert match_links(cited, ["https://a.org/x"]) == LinkMatch(1, 2, 1, 1)
        assert match_links(cited, ["https://a.org/x"], keep_www=True, keep_slash=True) == LinkMatch(
            1, 3, 1, 1
        )
        assert match_links(["https://a.org/x"], ["https://a.org/x/"], keep_slash=True).full == 0
        assert match_links(["https://a.org/x/"], ["https://a.org/x/"], keep_slash=True).full == 1

    def test_a_link_by_http_and_by_https_is_one(self):
        assert match_links(["http://a.org/x", "https://a.org/x"], ["https://a.org/x"]) == LinkMatch(
            1, 1, 1, 1
        )
        assert match_links(["https://a.org:443/x", "http://a.org:80/x"], ["http://a.org/x"]).cited == 1
        assert match_links(["http://a.org:443/x"], ["https://a.org/x"]).full == 0
        assert match_links(["https://a.org:8443/x"], ["http://a.org:8443/x"]).full == 1

    def test_invalid_url_counts_as_cited_and_matches_nothing(self):
        assert match_links(["javascript:alert(1)", "http://[::1", ""], ["nonsense"]) == LinkMatch(1, 3, 0, 0)
        assert match_links(["www.spam.biz"], ["www.nature.com/x"]) == LinkMatch(1, 1, 0, 0)

    def test_urls_come_from_marks_lists_and_separate_citations(self):
        report = Report(
            task_id="1", system="A", text=TEXT, citations=(Citation(url="https://c.org/#:~:text=x"),)
        )
        assert set(cited_urls(report.text, report.citations)) == {
            "https://www.iea.org/heat-pumps/?utm_source=x",
            "https://energy.gov/heat#cold",
            "https://c.org/",
        }


class TestGeneralRubrics:
    @pytest.mark.parametrize("language", ["en", "zh", "fr"])
    def test_general_rubrics_are_48_with_73_points(self, language):
        rubrics = general_rubrics(language)
        assert len(rubrics) == len({rubric.criterion for rubric in rubrics}) == 48
        assert sum(rubric.full for rubric in rubrics) == 73
        points = {name: sum(r.full for r in rubrics if r.tags == (name,)) for name in DIMENSIONS}
        assert list(points.values()) == [13, 11, 11, 9, 11, 11, 7]

    def test_both_languages_differ_only_in_wording(self):
        shape = [[(r.id, r.points, r.tags) for r in general_rubrics(language)] for language in ("en", "zh")]
        assert shape[0] == shape[1]

    def test_published_file_is_a_list_of_strings(self, tmp_path):
        file = tmp_path / "grr.json"
        file.write_text(json.dumps(["Is it long? Yes=2, No=0", "How good? 好＝3，中＝1，差＝0"]))
        first, second = load_criteria(str(file))
        assert (first.options, second.options) == ((0, 2), (0, 1, 3))

    async def test_other_general_rubrics_replace_ours(self, tmp_path):
        file = tmp_path / "grr.jsonl"
        file.write_text('{"criterion": "Own one", "points": 4, "tags": ["own"]}\n"Own two? Yes=2, No=0"\n')
        protocol = Rigorous(file=str(file))
        card = await score_case(protocol, case(), DirectTools(judge(Own=PointsGiven(points=0))))
        assert card.scores["grr"] == card.scores["dimension:own"] == 0
        assert set(card.scores) == {metric.name for metric in protocol.metrics_of(case())}

    async def test_dimension_is_scored_by_its_own_rubrics(self, tmp_path):
        file = tmp_path / "grr.jsonl"
        lines = [{"criterion": f"{tag} it", "points": 4, "tags": [tag]} for tag in ("Clear", "Deep")]
        file.write_text("\n".join(json.dumps(line) for line in lines))
        tools = DirectTools(judge(Deep=PointsGiven(points=0)))
        card = await score_case(Rigorous(file=str(file)), case(), tools)
        assert (card.scores["dimension:Clear"], card.scores["dimension:Deep"]) == (1, 0)
        assert card.scores["grr"] == 0.5


class TestScore:
    @pytest.mark.parametrize("usage", [ReportUsage(total_tokens=9), ReportUsage(input_tokens=9)])
    async def test_partly_known_tokens_give_no_contribution(self, usage):
        card = await score_case(Rigorous(), case(usage=usage), DirectTools(judge()))
        assert card.status == "scored"
        assert "contribution_per_token" not in card.scores

    def test_boost_lies_between_nothing_and_everything_cited(self):
        bounds = {
            (metric.worst, metric.best) for metric in Rigorous().metrics if metric.name.startswith("boost")
        }
        assert bounds == {(1.0, 1 + 0.2 * (0.7 + 0.3))}

    async def test_case_by_hand_gives_the_expected_scores(self):
        tools = DirectTools(judge(relevance=4, Are=PointsGiven(points=1)))
        card = await score_case(Rigorous(), case(), tools)
        assert card.status == "scored"
        good = 0.5 * 3 / 4 + 0.5 * 1
        # "heat pumps" occurs 3 times in the text without its marks and list, "defrost cycle" never, "gas boiler" once.
        drift = 0.7 * (1 - (4 / 5 + 0) / 2) + 0.3 * (4 / 5)
        boost = 1 + 0.2 * (0.7 * 1 / 2 + 0.3 * 2 / 3)
        boost_alg1 = 1 + 0.2 * (0.7 * 1 / 2 + 0.3 * 1 / 3)
        boost_code = 1 + 0.2 * (
            0.7 * 0 / 2 + 0.3 * 2 / 3
        )  # "www." stands between, so nothing is cited in full
        expected = {
            "quality": good,
            "qsr": 3 / 4,
            "grr": 1,
            "drift": drift,
            "fak_drift": 0.6,
            "fdk_drift": 0.8,
            "boost": boost,
            "boost_alg1": boost_alg1,
            "boost_code": boost_code,
            "integrated": good * (1 - drift) * boost * 100,
            "integrated_alg1": good * (1 - drift) * boost_alg1 * 100,
            "integrated_code": good * (1 - drift) * boost_code * 100,
            "contribution_per_token": good * (1 - drift) * boost * 100 / 2000,
            "contribution_per_token_alg1": good * (1 - drift) * boost_alg1 * 100 / 2000,
            "contribution_per_token_code": good * (1 - drift) * boost_code * 100 / 2000,
            "retrieval_index": 2 / 10,
            "annotated": 2,
            "retrieved": 9,
            "inference_seconds": 80,
            "retrieval_seconds": 20.5,
            **{f"dimension:{name}": 1 for name in DIMENSIONS},
        }
        assert card.scores == {name: pytest.approx(value) for name, value in expected.items()}
        assert len(tools.questions) == 2 + 48 + 1
        [rated] = [question for question in tools.questions if isinstance(question, KeywordRelevance)]
        assert rated.context["report"] == clean_report(TEXT)
        assert {one.context["report"] for one in tools.questions if one is not rated} == {TEXT}
        assert set(card.scores) == {metric.name for metric in Rigorous().metrics}

    async def test_annotations_handed_over_are_judged_but_not_rated(self):
        """Rubrics see them, keywords and their relevance do not; T counts them alone unless the option says so."""
        handed = (
            Citation(url="https://energy.gov/other", title="heat pumps everywhere", position=len(TEXT) // 2),
            Citation(url="https://elsewhere.example/x"),
            Citation(url="https://www.iea.org/heat-pumps/"),
        )
        report = msgspec.structs.replace(case().report, citations=handed)
        given = msgspec.structs.replace(case(), report=report)
        tools, plain = DirectTools(judge()), DirectTools(judge())
        card = await score_case(Rigorous(), given, tools)
        bare = await score_case(Rigorous(), case(), plain)
        shown = {one.context["report"] for one in tools.questions if isinstance(one, RubricPoints)}
        assert shown == {annotated(TEXT, handed)}
        rated = [one for one in tools.questions if isinstance(one, KeywordRelevance)]
        assert [one.context["report"] for one in rated] == [clean_report(TEXT)]
        assert (card.scores["drift"], card.scores["quality"]) == (
            bare.scores["drift"],
            bare.scores["quality"],
        )
        assert card.scores["boost"] == pytest.approx(1 + 0.2 * (0.7 * 2 / 2 + 0.3 * 2 / 4))
        card = await score_case(Rigorous(cited="annotations_and_text"), given, DirectTools(judge()))
        assert card.scores["boost"] == pytest.approx(1 + 0.2 * (0.7 * 2 / 2 + 0.3 * 3 / 5))

    def test_annotations_stand_at_their_places_or_at_the_end(self):
        text = "Alpha has grown. Beta has fallen."
        handed = (
            Citation(url="https://b.example/y\nz", title="Second [two]", marker="[7]"),
            Citation(url="https://a.example/x", title="First", position=16),
            Citation(url="https://b.example/yz"),
            Citation(url="https://c.example", position=10**9),
            Citation(url=" "),
        )
        whole = annotated(text, handed)
        assert whole == (
            "Alpha has grown. [First](https://a.example/x) Beta has fallen. [source](https://c.example)"
            "\n\n## References\n\n[7] https://b.example/yz Second two"
        )
        assert annotated(whole, handed) == whole
        assert annotated(text, ()) == text

    @pytest.mark.parametrize(
        "title", ["](https://x.example)", "\n## Sources\n", "<<end", "x" * 900, "\ud800"]
    )
    def test_annotation_title_cannot_change_the_text(self, title):
        for position in (None, 3):
            whole = annotated("Alpha.", (Citation(url="https://a.example", title=title, position=position),))
            assert [one.url for one in parse("It is. " + whole).references] in ([], ["https://a.example"])
            assert len(whole) < 500

    def test_code_form_matches_lower_case_substrings(self):
        trusted = ["https://Energy.gov/Report", "https://iea.org/a"]
        cited = ["HTTPS://ENERGY.GOV/report/2020?x=1", "https://not-iea.org/b", "nothing"]
        assert match_substrings(cited, trusted) == LinkMatch(trusted=2, cited=3, full=1, host=2)
        assert match_substrings(["", "x"], ["", "//"]) == LinkMatch(1, 1, 0, 0)

    async def test_only_used_keywords_are_asked_about(self):
        tools = DirectTools(judge())
        await score_case(Rigorous(), case(), tools)
        [asked] = [question for question in tools.questions if isinstance(question, KeywordRelevance)]
        assert asked.keywords == ("heat pumps", "gas boiler")
        nothing = DirectTools(judge())
        card = await score_case(Rigorous(), case(text="Nothing of the kind."), nothing)
        assert not any(isinstance(question, KeywordRelevance) for question in nothing.questions)
        assert (card.scores["fak_drift"], card.scores["fdk_drift"]) == (1, 0)

    async def test_metrics_of_missing_counts_are_absent(self):
        card = await score_case(Rigorous(), case(usage=None), DirectTools(judge()))
        assert not {"contribution_per_token", "contribution_per_token_alg1", "retrieval_index"} & set(
            card.scores
        )
        own_nothing = ReportUsage(total_tokens=5, input_tokens=5)
        card = await score_case(Rigorous(), case(usage=own_nothing), DirectTools(judge()))
        assert "contribution_per_token" not in card.scores

    async def test_empty_report_gets_the_minimum(self):
        card = await score_case(Rigorous(), case(text=" "), DirectTools(judge()))
        assert (card.scores["integrated"], card.scores["drift"], card.scores["boost"]) == (0, 1, 1)
        assert (card.status, card.reason) == ("scored", "report_empty")

    async def test_lexical_judge_scores_everything(self):
        card = await score_case(Rigorous(), case(), DirectTools(LexicalJudge()))
        assert card.status == "scored"
        assert card.scores["fak_drift"] < 1

    @pytest.mark.parametrize(
        ("gold", "reason"),
        [
            (None, "gold_missing"),
            ({}, "gold_invalid"),
            (GOLD | {"qsr": []}, "gold_invalid"),
            (GOLD | {"qsr": ["No values here"]}, "gold_invalid"),
            (GOLD | {"fak": []}, "gold_invalid"),
            (GOLD | {"tsl": "x"}, "gold_invalid"),
        ],
    )
    async def test_invalid_gold_leaves_the_case_unscored(self, gold, reason):
        for text in (TEXT, " "):
            card = await score_case(Rigorous(), case(gold, text), DirectTools(judge()))
            assert set(card.scores.values()) == {None}
            assert set(card.reasons.values()) == {reason}
            assert [(line.what, line.reason) for line in card.evidence] == [("gold", reason)]
            assert "task 1" in card.evidence[0].outcome.words

    async def test_rubrics_may_be_objects(self):
        gold = GOLD | {"qsr": [{"criterion": "Is it so?", "values": [0, 3]}]}
        card = await score_case(Rigorous(), case(gold), DirectTools(judge(Is=PointsGiven(points=3))))
        assert card.scores["qsr"] == 1


class TestMissing:
    @pytest.mark.parametrize(
        ("reply", "reason"),
        [
            ('{"analysis": "", "relevance": {"c01": 4', "judge_unparseable"),
            ('{"relevance": {"c01": "4", "c02": 1}}', "judge_unparseable"),
            ('{"relevance": {"c01": 6, "c02": 1}}', "judge_unparseable"),
            ('{"relevance": {"c01": 2.5, "c02": 1}}', "judge_unparseable"),
            ('{"relevance": {"c01": 4}}', "judge_unparseable"),
            ('{"relevance": {"c01": 4, "c02": 1, "c03": 1}}', "judge_unparseable"),
            ("", "judge_unparseable"),
            (Reply(reason="judge_refused", finish_reason="content_filter"), "judge_refused"),
        ],
    )
    async def test_malformed_relevance_unscores_only_what_needs_it(self, reply, reason):
        card = await score_case(Rigorous(), case(), DirectTools(judge(keywords=reply)))
        unscored = {name for name, value in card.scores.items() if value is None}
        assert unscored == {
            *(f"integrated{form}" for form in ("", "_alg1", "_code")),
            *(f"contribution_per_token{form}" for form in ("", "_alg1", "_code")),
            "drift",
            "fak_drift",
            "fdk_drift",
        }
        assert set(card.reasons.values()) == {reason}
        assert CAUSES[reason] == "infrastructure"
        assert card.scores["quality"] == 1

    async def test_integrated_score_has_bounds(self):
        protocol = Rigorous(min_answered=0.5)
        tools = DirectTools(judge(Does="judge_timeout"))
        card = await score_case(protocol, case(), tools)
        assert card.scores["integrated"] is None
        focus = (1 - card.scores["drift"]) * card.scores["boost"] * 100
        bounds = card.bounds["integrated"]
        assert (bounds.low, bounds.high) == (
            pytest.approx((0.5 * 2 / 4 + 0.5) * focus),
            pytest.approx(focus),
        )
        assert bounds.parts - bounds.answered == 1
        assert (card.scores["qsr"], card.bounds["qsr"].answered) == (None, 1)
        assert set(card.scores) == {metric.name for metric in protocol.metrics}

    @pytest.mark.parametrize("reason", ["judge_timeout", "answer_truncated", "context_overflow"])
    async def test_drift_bounds_are_ordered(self, reason):
        card = await score_case(Rigorous(), case(), DirectTools(judge(keywords=reason)))
        low, high = (0.7 * (1 - 1 / 2) + 0.3 / 5), (0.7 * (1 - 0.2 / 2) + 0.3)
        assert (card.scores["drift"], card.reasons["drift"]) == (None, reason)
        assert card.bounds["drift"].low == pytest.approx(low)
        assert card.bounds["drift"].high == pytest.approx(high)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("Is A = 3 named? Yes=1, No=0", (0, 1)),
        ("Is x = 2.5 used? (Fully = 2 / Partially = 1 / No = 0).", (0, 1, 2)),
        ("是否给出日期？是＝2，否＝0", (0, 2)),
        ("Is it wrong? Yes=-2; No=0", (-2, 0)),
    ],
)
def test_rubric_written_as_one_string_keeps_its_words(text, options):
    rubric = Criterion.parse(text)
    assert (rubric.criterion, rubric.options) == (text, options)


@pytest.mark.parametrize("judge", [LexicalJudge(), judge()], ids=["lexical", "scripted"])
def test_files_become_a_leaderboard(judge, tmp_path, monkeypatch):
    monkeypatch.setattr("adjudge.engine.evaluation.assembly.make_judge", lambda *parts: judge)
    folder = {"out": str(tmp_path / "run"), "store": str(tmp_path / "store")}
    config = RunConfig.load(EXAMPLE / "adjudge.yaml", **folder)
    first, second = evaluate(config), evaluate(config)
    assert (first.scorecards, first.unscored, first.rejected) == (4, 0, ())
    # Equal questions about several reports are asked once, and found by each of them the second time.
    assert second.from_judge == 0 and second.from_store >= first.from_judge > 0
    boards = {board.metric: board for board in second.leaderboard.metrics}
    assert [standing.system for standing in boards["integrated"].standings] == ["heron", "plover"]
    assert [standing.system for standing in boards["drift"].standings] == ["heron", "plover"]
