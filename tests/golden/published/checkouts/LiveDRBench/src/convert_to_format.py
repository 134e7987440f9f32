"""Made prompts for answers in prose."""

import json


def parse_output(pred):
    PROMPT = "Find the JSON in the text and write it out."
    return PROMPT, f"Text: {pred}"


def convert_to_format(pred, format):
    PROMPT = "Bring the JSON into the form that the question asks for."
    return PROMPT, f"Question: {format}\nJSON: {json.dumps(pred)}"
