"""Made prompts of FACT's verdicts."""

prompt_template = """请先读网页，再逐句判断网页是否证实了它。

网页
{reference}
句子
{statements}

用 JSON 回答，取 "supported"、"unsupported" 或 "unknown"：[{{"idx": 1, "result": "unknown"}}]"""

prompt_template_en = """Read the page, then say of every sentence whether the page bears it out.

PAGE
{reference}
SENTENCES
{statements}

As JSON, with "supported", "unsupported" or "unknown": [{{"idx": 1, "result": "unknown"}}]"""
