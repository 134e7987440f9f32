"""Made prompts of RACE's marks, in Chinese."""

generate_merged_score_prompt = """
两份报告回答同一个问题：{task_prompt}

甲：
{article_1}

乙：
{article_2}

请按下列每一条给两份报告打分，满分十分：
{criteria_list}

用 JSON 按组回答：{{"GROUP": [{{"criterion": "……", "article_1_score": 5, "article_2_score": 5}}]}}
"""

point_wise_score_prompt = """
一份报告回答这个问题：{task_prompt}

报告：
{article}

请按下列每一条打分，满分十分：
{criteria_list}

用 JSON 按组回答：{{"GROUP": [{{"criterion": "……", "target_score": 5}}]}}
"""
