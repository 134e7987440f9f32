"""Made prompts of RACE's first step."""

clean_article_prompt_zh = """
下面是一份报告。请原样抄写，只删去文献标记、链接和文末的书目。

<<<{article}>>>

只写抄好的正文。
"""

clean_article_prompt_en = """
Below is a report. Copy it as it is, but leave out marks of citation, links and the list of sources at its end.

<<<{article}>>>

Write the copy and nothing more.
"""
