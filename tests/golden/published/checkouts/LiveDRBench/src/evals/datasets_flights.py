"""Made prompts for rows and their fields."""

prompts = {
    "dict": """
Gold, then answer. Grade every field of the gold from 0 (wrong) to 3 (right) by what the answer has there.

Gold: {dict_gt}
Answer: {dict_pred}

Write one JSON object with the gold's keys, such as {{"name": 3}}.
""",
    "list_of_dicts_match": """
Which row of the gold does the answer mean? Go by the fields named below.

Gold: {list_gt}
Answer: {dict_pred}
Fields: {primary_keys}
Notes: {note}

Write that row as JSON, or {{}} if it means another.
""",
}
