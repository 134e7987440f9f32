"""Rows that bring their own rubrics, in the shapes that data sets publish, by every trainer's adapter and dialect."""

import json

import pytest

from tests.gaming import MARKS, PLAIN, said
from tests.trainers.ways import WAYS, Rollout, valued

MET, UNMET = "The report names fact number 0.", "The report names the zebra Ulrike."
RAR = [
    {"title": "Fact", "description": MET, "weight": 4},
    {"title": "Zebra", "description": UNMET, "weight": 1},
]
TULU = {"query": "?", "rubrics": RAR, "rubrics_types": ["general", "adaptive"]}
ROWS = {
    "researchrubrics": {
        "rubrics": [
            {"criterion": MET, "weight": 4, "axis": "Explicit Criteria"},
            {"criterion": UNMET, "weight": 1, "axis": "Synthesis"},
        ]
    },
    "healthbench": {
        "rubrics": [
            {"criterion": MET, "points": 4, "tags": ["axis:accuracy"]},
            {"criterion": UNMET, "points": 1, "tags": ["axis:completeness"]},
        ]
    },
    "rar": {"rubric": RAR},
    "tulu": {"ground_truth": TULU},
    "own": {"gold": {"rubrics": [{"criterion": MET, "points": 4}, {"criterion": UNMET, "points": 1}]}},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", ROWS)
async def test_row_is_judged_by_its_own_rubrics(way, shape, good, request):
    if way == "nemo_gym_server":
        request.getfixturevalue("nemo_gym")
    as_json = {name: json.dumps(value) for name, value in ROWS[shape].items()}
    for row in (ROWS[shape], as_json):
        for text, value in ((MARKS, 0.8), (PLAIN, 0.0)):
            given = Rollout(turns=[said(text)], row=row, prompt="another prompt")
            assert await valued(way, good, given) == pytest.approx(value), (row, text)
