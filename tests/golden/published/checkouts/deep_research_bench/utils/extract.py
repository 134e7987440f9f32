"""Made prompts of FACT's citations."""

prompt_template = """这份报告里哪些句子注明了出处？

---
{report_text}
---

逐条列出句子和出处，用 JSON：[{{"fact": "……", "ref_idx": 1, "url": "……"}}]"""

prompt_template_en = """Which sentences of this report name a source?

---
{report_text}
---

List every sentence with its source, as JSON: [{{"fact": "...", "ref_idx": 1, "url": "..."}}]"""
