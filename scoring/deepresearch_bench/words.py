"""RACE's and FACT's metrics, described."""

from adjudge.scoring.contract.scorecard import MetricWords

_OVER = "The report's marks over the sum of its own and the reference's: 0.5, shown as 50, is as good."

RACE = MetricWords(
    source="DeepResearch Bench (RACE)",
    of={
        "overall": f"Weighted marks under all of a task's criteria. {_OVER}",
        "comprehensiveness": f"How fully the report covers the task. {_OVER}",
        "insight": f"How deep the report's analysis goes. {_OVER}",
        "instruction_following": f"How well the report does what the task asks for. {_OVER}",
        "readability": f"How clear and well ordered the report is. {_OVER}",
        "total": "The report's own weighted marks, without the reference.",
        "reference_runs": "The runs of five words that the report shares with the reference report.",
    },
    units={
        "total": "marks from 0 to 10",
        "reference_runs": "share",
    },
)

_PAIR = "A pair is a statement of the report and a page that it cites for it."

FACT = MetricWords(
    source="DeepResearch Bench (FACT)",
    of={
        "c_acc": f"Citation accuracy by the paper (equation 3): supported of all pairs, a mean over tasks. {_PAIR}",
        "e_cit": "Effective citations by the paper (equation 4): supported pairs in a report, a mean over tasks.",
        "c_acc_code": "Citation accuracy by the code: supported pairs of all judged ones, pooled over tasks.",
        "e_cit_code": "Effective citations by the code: supported pairs for each report that cites.",
        "pairs": f"All pairs of a report. {_PAIR}",
        "supported": "Pairs whose page supports the statement.",
        "unsupported": "Pairs whose page does not support the statement.",
        "unknown": "Pairs that the judge could not decide on.",
        "unreachable": "Pairs whose page cannot be read, which the report chose.",
        "unscored": "Pairs without an answer for a reason that is not the report's.",
        "judged": "Pairs that are supported or not.",
        "cited": "Whether the report cites anything: 1 or 0.",
        "c_acc_distinct": "Citation accuracy with every page counted once, whatever addresses lead to it, and without "
        "support from pages that hold little but the report's own sentences.",
        "read": "Pairs whose page was read.",
        "statements": "Distinct statements that cite.",
        "distinct_pages": "Pages that were read, told apart by where they ended and by their text.",
        "addresses": "Addresses whose page was read.",
        "echoes": "Pages that hold little but the report's own sentences.",
        "marks": "Citation marks of the report, and its addresses that no statement cites.",
        "lost": "Marks that lead nowhere, and addresses that no statement cites.",
        "disputed": "Addresses cited by the report's marks or as the judge reads it, but not by both.",
        "lost_share": "Marks and addresses that lead to no pair, of all.",
        "read_share": "The pairs whose page was read, of all pairs.",
        "citations_per_statement": "Pairs for each distinct statement.",
        "uncited": "Statements that cite nothing.",
        **{
            f"uncited_{kind}{form}": f"Statements that cite nothing and are {said}{of}."
            for form, of in (("", ""), ("_share", ", of all that cite nothing"))
            for kind, said in (
                ("supported", "supported by a page that the report cites"),
                ("unsupported", "supported by none of the pages that the report cites"),
                ("uncheckable", "beyond what the cited pages that can be read speak of"),
            )
        },
        "addresses_per_page": "Addresses for each page: more than 1 where spellings or redirects lead to one page.",
    },
    units={
        **dict.fromkeys(("e_cit", "e_cit_code"), "citations a report"),
        "read_share": "share",
        "lost_share": "share",
        "citations_per_statement": "citations a statement",
        "addresses_per_page": "addresses a page",
        **dict.fromkeys(
            ("uncited_supported_share", "uncited_unsupported_share", "uncited_uncheckable_share"), "share"
        ),
    },
)
