"""Case files of `golden/rigorous`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adjudge.scoring.rubrics import rigorous
from adjudge.scoring.rubrics.links import match_links
from tests.conformance.case import Check, Checker, compare, read_lines


def check_formulas(path: Path) -> Iterator[Check]:
    for case in read_lines(path):
        yield compare(case["case"], _formulas(case["input"], case["params"]), case["expected"])


def _formulas(given: dict[str, Any], params: dict[str, float]) -> dict[str, Any]:
    links = match_links(given["annotations"], given["tsl"])
    good = rigorous.quality(given["qsr"], given["grr"], params["alpha"], params["beta"])
    away = rigorous.fak_drift(given["fak"], given["eps_plus"])
    toward = rigorous.fdk_drift(given["fdk"], given["eps_minus"])
    drift = rigorous.semantic_drift(away, toward, params["lam"], params["mu"])
    found: dict[str, Any] = {
        "quality": good,
        "fak_drift": away,
        "fdk_drift": toward,
        "semantic_drift": drift,
        "match_full": links.full,
        "match_host_incl_full": links.host,
        "S": links.trusted,
        "T": links.cited,
        "retrieval_index": rigorous.retrieval_index(links.cited, given["num_retrieved"]),
    }
    for name, variant in (("formula_4_3", "formula"), ("algorithm_1", "algorithm")):
        boost = rigorous.trustworthy_boost(links, variant, params["eta"], params["theta"], params["kappa"])
        integrated = rigorous.integrated_score(good, drift, boost)
        per_token = rigorous.contribution_per_token(integrated, given["token_total"] - given["token_input"])
        found[name] = {"boost": boost, "integrated": integrated, "contribution_per_token": per_token}
    return found


def check_paper_table(path: Path) -> Iterator[Check]:
    # Published scores are means of products, so the product of the published means only comes near them.
    for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
        product = rigorous.integrated_score(row["quality"], 1 - row["one_minus_sdrift"], row["tboost"])
        yield compare(row["model"], product, row["product_of_means"])


CHECKS: dict[str, Checker] = {"formula_cases.jsonl": check_formulas, "paper_table1.json": check_paper_table}
DATA: tuple[str, ...] = ()
