"""Made prompts for two answers that may be the same."""

prompts = {"EM": "Do both answers say the same? Write True or False."}


def is_match_func(pred, actual_item):
    return f"Gold: {actual_item}\nGiven: {pred}"
