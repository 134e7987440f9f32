"""Made prompts of recall."""


class InformationRecallEvaluator:
    def _verify_batch_insights(self, result_text, batch, insights_list):
        prompt = f"""How much of every point does the report bring out?

Asked was: {self.query or "No specific query provided"}

Points, {len(batch)} in all:
{insights_list}

Report:
{result_text}

Score {len(batch)} points from 0 to 1, as JSON: {{"results": [{{"id": 1, "reasoning": "...", "score": 1.0}}]}}
"""
        system_prompt = """You read reports closely and score what they bring out."""
        return system_prompt, prompt

    def _verify_batch_insights_compact(self, result_text, batch, insights_list):
        compact_prompt = f"""Score {len(batch)} points by the report.

Points:
{insights_list}

Report:
{result_text}

Write {len(batch)} scores as JSON and nothing more: {{"results": [{{"id": 1, "score": 1.0}}]}}"""
        compact_system = """You score in JSON."""
        return compact_system, compact_prompt
