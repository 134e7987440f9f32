"""What the metrics of the protocols by criteria are."""

from adjudge.scoring.contract.metric_words import MetricWords

__all__ = [
    "DRACO",
    "DRB2",
    "HEALTHBENCH",
    "LIVERESEARCHBENCH",
    "RESEARCHRUBRICS",
    "RIGOROUS",
    "RLER",
    "RUBRICS",
]

_POINTS = "The points of the criteria that are met, over all positive points"

RUBRICS = MetricWords(
    source="adjudge",
    of={
        "score": f"{_POINTS}; below 0 where penalties prevail.",
        "score_clipped": f"{_POINTS}, not below 0.",
        "score_mean_clipped": f"{_POINTS}; only the mean over tasks is held between 0 and 1.",
        "share": "The criteria that are met, without their points; a criterion with penalty counts when it is not.",
        "pass_rate": "The criteria that are met in full, without their points.",
        "tag:": f"{_POINTS}, over the criteria with this tag.",
        "share:": "The criteria with this tag that are met, without their points.",
        "pass_rate:": "The criteria with this tag that are met in full.",
    },
)
HEALTHBENCH = MetricWords(
    source="HealthBench",
    of={
        "score": f"{_POINTS}; the mean over examples is held between 0 and 1.",
        "tag:": f"{_POINTS}, over the criteria with this tag.",
    },
)
DRACO = MetricWords(
    source="DRACO",
    of={
        "score": f"{_POINTS}, held between 0 and 1.",
        "pass_rate": "The criteria that pass, without their points; a negative one passes when it is not met.",
        "score:": f"{_POINTS}, over the criteria of this section.",
        "pass_rate:": "The criteria of this section that pass.",
    },
)
RESEARCHRUBRICS = MetricWords(
    source="ResearchRubrics",
    of={
        "score": f"{_POINTS}; below 0 where penalties prevail.",
        "axis:": f"{_POINTS}, over the criteria of this axis.",
    },
)
RLER = MetricWords(
    source="DR Tulu (RLER)",
    of={
        "rubric_reward": "The weighted scores of all rubrics, over their weights.",
        "persistent_rubric_reward": "The weighted scores of the persistent rubrics, as the training code divides them.",
        "adaptive_rubric_reward": "The weighted scores of the adaptive rubrics, as the training code divides them.",
    },
    units=dict.fromkeys(("persistent_rubric_reward", "adaptive_rubric_reward"), "share"),
)
DRB2 = MetricWords(
    source="DeepResearch Bench II",
    of={
        "total": "The items of all dimensions that are met.",
        "info_recall": "The items about information that are met.",
        "analysis": "The items about analysis that are met.",
        "presentation": "The items about presentation that are met.",
        "blocked_rate": "The items that are met only by text that rests on the blocked source.",
    },
)
LIVERESEARCHBENCH = MetricWords(
    source="LiveResearchBench",
    of={
        "average": "The mean of presentation, coverage, consistency and citation; ours, without depth.",
        "presentation": "The ten fixed items about presentation that are met.",
        "coverage": "The items of the task's checklist that are met.",
        "consistency": "A score by the number of contradictions that the judge lists.",
        "citation": "A score by the number of statements without a citation that the judge lists.",
        "depth": "Depth against the reference report in both orders: 1 for a win, a half for a tie.",
        "depth_code": "Wins in depth over wins and losses, pooled over tasks.",
        "depth_won": "Orders in which the report wins in depth.",
        "depth_decided": "Orders in which the report wins or loses in depth.",
    },
    units={
        **dict.fromkeys(("depth_won", "depth_decided"), "count"),
        **dict.fromkeys(("average", "consistency", "citation"), "share"),
    },
)

RIGOROUS = MetricWords(
    source="Rigorous Bench",
    of={
        "integrated": "Quality times one minus drift times boost, times 100.",
        "quality": "The mean of the shares of points under the task's own and the general rubrics.",
        "qsr": "Points of the task's own rubrics, over all of them.",
        "grr": "Points of the general rubrics, over all of them.",
        "dimension:": "Points of the general rubrics of this dimension, over all of them.",
        "drift": "How far the report is from the task's subject, by keywords.",
        "fak_drift": "How much the keywords that the report should have are missing.",
        "fdk_drift": "How much the keywords that the report should not have are there.",
        "boost": "A factor for citing trusted sources and hosts.",
        "contribution_per_token": "The integrated score over the tokens that the system spent beyond its input.",
        "retrieval_index": "Cited links over the pages that were retrieved.",
    },
    units={
        "integrated": "points from 0 to 120",
        "boost": "factor from 1 to 1.2",
        "contribution_per_token": "points a token",
        "retrieval_index": "links a page",
    },
    forms={
        "_alg1": "By algorithm 1: trusted hosts without the links that match in full.",
        "_code": "By the code: addresses are matched as substrings.",
    },
)
