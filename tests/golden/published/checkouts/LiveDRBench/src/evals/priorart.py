"""A made prompt for titles."""

prompts = {
    "str_search": """
Do these titles hold the one below, spelled in this way or another?

List: {gt_list}
Wanted: {pred_str}

Write {{"match": "as in the list"}}, or {{}}.
"""
}
