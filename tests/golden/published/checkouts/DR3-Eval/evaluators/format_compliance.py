"""Made prompts of the checklist."""


class FormatComplianceEvaluator:
    def _evaluate_checklist_batch(self, result_text, checklist_list, batch_size):
        prompt = f"""Does the report do what was asked in {batch_size} points?

{checklist_list}

Report:
{result_text}

Write JSON: {{"results": [{", ".join([f'{{"id": {i + 1}, "satisfied": true/false}}' for i in range(batch_size)])}]}}"""
        return self.llm.call(system="You check reports against lists.", user=prompt)
