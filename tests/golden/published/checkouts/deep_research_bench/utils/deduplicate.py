"""Made prompts of FACT's repeats."""

prompt_template = """这些句子里也许有重复的：
{statements}

写出要保留的序号，例如 [1, 2, 4]。"""

prompt_template_en = """Some of these sentences may say what another one says already:
{statements}

Write the numbers of those to keep, such as [1, 2, 4]."""
