"""Made prompts for weights and criteria, in English."""

generate_eval_dimension_weight_prompt = """
How much should four things count in marking reports on this question? They are what it covers, how deep it goes,
whether it does as told, and how well it reads.

Question: {task_prompt}

Give shares that add up to 1, as JSON between <json_output> and </json_output>: {{"insight": 0.3, ...}}
"""

generate_eval_criteria_prompt_comp = """
By what would you tell a good report from a poor one, as to completeness?

Question: {task_prompt}

List measures whose weights add up to 1:
<json_output>[{{"criterion": "...", "explanation": "...", "weight": 1}}]</json_output>
"""

generate_eval_criteria_prompt_insight = """
By what would you tell a good report from a poor one, as to depth of thought?

Question: {task_prompt}

List measures whose weights add up to 1:
<json_output>[{{"criterion": "...", "explanation": "...", "weight": 1}}]</json_output>
"""

generate_eval_criteria_prompt_Inst = """
By what would you tell a good report from a poor one, as to doing what was asked?

Question: {task_prompt}

List measures whose weights add up to 1:
<json_output>[{{"criterion": "...", "explanation": "...", "weight": 1}}]</json_output>
"""

generate_eval_criteria_prompt_readability = """
By what would you tell a good report from a poor one, as to ease of reading?

Question: {task_prompt}

List measures whose weights add up to 1:
<json_output>[{{"criterion": "...", "explanation": "...", "weight": 1}}]</json_output>
"""
