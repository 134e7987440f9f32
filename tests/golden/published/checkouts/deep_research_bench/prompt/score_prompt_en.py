"""Made prompts of RACE's marks, in English."""

generate_merged_score_prompt = """
Two reports answer one question: {task_prompt}

The first:
{article_1}

The second:
{article_2}

Mark both from 0 to 10 by every one of these measures:
{criteria_list}

Answer as JSON, by group: {{"GROUP": [{{"criterion": "...", "article_1_score": 5, "article_2_score": 5}}]}}
"""

point_wise_score_prompt = """
A report answers the question: {task_prompt}

The report:
{article}

Mark it from 0 to 10 by every one of these measures:
{criteria_list}

Answer as JSON, by group: {{"GROUP": [{{"criterion": "...", "target_score": 5}}]}}
"""
