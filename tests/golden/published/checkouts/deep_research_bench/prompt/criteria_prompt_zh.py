"""Made prompts for weights and criteria, in Chinese."""

generate_eval_dimension_weight_prompt = """
给下面这个问题的报告打分时，四个方面各占多少？

问题：{task_prompt}

各份额之和为 1，用 JSON 写在 <json_output> 和 </json_output> 之间：{{"insight": 0.3, ...}}
"""

generate_eval_criteria_prompt_comp = """
好的报告与差的报告有何不同？只看：是否全面。

问题：{task_prompt}

列出各项，权重之和为 1：<json_output>[{{"criterion": "……", "explanation": "……", "weight": 1}}]</json_output>
"""

generate_eval_criteria_prompt_insight = """
好的报告与差的报告有何不同？只看：见解是否深刻。

问题：{task_prompt}

列出各项，权重之和为 1：<json_output>[{{"criterion": "……", "explanation": "……", "weight": 1}}]</json_output>
"""

generate_eval_criteria_prompt_Inst = """
好的报告与差的报告有何不同？只看：是否切题。

问题：{task_prompt}

列出各项，权重之和为 1：<json_output>[{{"criterion": "……", "explanation": "……", "weight": 1}}]</json_output>
"""

generate_eval_criteria_prompt_readability = """
好的报告与差的报告有何不同？只看：是否易读。

问题：{task_prompt}

列出各项，权重之和为 1：<json_output>[{{"criterion": "……", "explanation": "……", "weight": 1}}]</json_output>
"""
