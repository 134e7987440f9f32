"""A made prompt for names."""

prompts = {
    "str_search": """
Do these names hold the one below, spelled in this way or another?

List: {gt_list}
Wanted: {pred_str}

Write {{"match": "as in the list"}}, or {{}}.
"""
}
