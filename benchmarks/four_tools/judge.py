import json

from deepeval import evaluate
from deepeval.evaluate import AsyncConfig
from deepeval.metrics import GEval
from deepeval.models import LocalModel
from deepeval.test_case import LLMTestCase, SingleTurnParams

ASKED = [SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT]
CRITERIA = (
    "Says how long the bridge is",
    "Names the year in which it was finished",
    "Says where its figures are from",
)
model = LocalModel(model="mock", base_url="{url}", api_key="none")
metrics = [GEval(name=one, evaluation_steps=[one], evaluation_params=ASKED, model=model) for one in CRITERIA]
rows = [json.loads(line) for line in open("reports.jsonl")]
cases = [LLMTestCase(input=row["prompt"], actual_output=row["text"]) for row in rows]
evaluate(cases, metrics, async_config=AsyncConfig(max_concurrent=36))
