"""Made prompts of depth."""


class OverallQualityEvaluator:
    def evaluate(self, result_text, dr_question):
        prompt = f"""
How deep does this report go, from 0 to 10?

Question: {dr_question}

Report: {result_text}

Write <depth_quality><score>5</score><justification>...</justification></depth_quality>.
"""
        first = self.llm.call(system="You judge how deep reports go.", user=prompt)
        if first:
            return first
        prompt = f"""
Once more, in tags alone: how deep does the report go?

Question: {dr_question}

Report: {result_text}

<depth_quality><score>0 to 10</score><justification>why</justification></depth_quality>
"""
        return self.llm.call(system="You judge how deep reports go.", user=prompt)
