"""The doctor on a cluster: what nodes report, and the findings drawn from it."""

import json

import msgspec
import pytest

from adjudge.engine.config.run import RunConfig
from tests.chaos import raylets
from tests.commands import run
from tests.mock_openai import MockOpenAI
from tests.worlds import world

checkup = pytest.importorskip("adjudge.engine.commands.doctor_cluster")

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray's pipes to its processes
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

GOOD = checkup.Node(
    name="one", gpus=1, versions={"adjudge": "1", "numpy": "2"}, store="", judge="", skew=0.1, doubt=0.01
)


def bad(nodes: list[object], **settings: object) -> dict[str, str]:
    config = RunConfig.of({"tasks": "t", **settings})
    found = checkup.findings_of(nodes, config)
    assert all(finding.fix for finding in found)
    return {finding.what: finding.found for finding in found if not finding.good}


def test_equal_nodes_pass():
    assert bad([GOOD, msgspec.structs.replace(GOOD, name="two")]) == {}


@pytest.mark.parametrize(
    ("change", "what", "said"),
    [
        ({"versions": {"adjudge": "2", "numpy": "2"}}, "cluster versions", "adjudge: 1 on one; 2 on two"),
        ({"versions": {"numpy": "2"}}, "cluster versions", "none on two"),
        ({"store": "is another folder there"}, "cluster store", "two: is another folder there"),
        ({"judge": "judge_unavailable"}, "cluster judge", "two: judge_unavailable"),
        ({"skew": -7.0}, "cluster clocks", "two -7.0 s"),
    ],
)
def test_differing_node_is_named(change, what, said):
    found = bad([GOOD, msgspec.structs.replace(GOOD, name="two", **change)])
    assert list(found) == [what] and said in found[what]


def test_silent_nodes_and_too_few_gpus_are_reported():
    assert bad([GOOD, "two"]) == {"cluster nodes": "1 of 2 answer; not two"}
    assert bad([msgspec.structs.replace(GOOD, skew=5.0, doubt=10.0)]) == {}
    judge = {"backend": "vllm", "model": "m", "replicas": 2}
    cluster = {"address": "auto", "judge_resources": {"GPU": 1}}
    assert bad([GOOD], judge=judge, cluster=cluster) == {
        "cluster GPUs": "1, 2 needed by the judge's replicas"
    }


@pytest.mark.timeout(300)
async def test_every_node_of_a_cluster_answers(tmp_path, capsys):
    import asyncio

    async with MockOpenAI() as mock:
        judge = {"backend": "openai", "url": mock.url, "model": "mock", "retries": 0}
        with raylets(1, cpus=1) as cluster:
            path = world(tmp_path, judge=judge, cluster=cluster.address)
            code, out, _ = await asyncio.to_thread(run, capsys, "doctor", path, "--json")
            found = {finding["what"]: finding for finding in json.loads(out)}
            assert code == 0, found
            assert found["cluster nodes"]["found"] == "2 of 2 answer"
            assert found["cluster judge"]["good"] and mock.probes == 3
            assert not list(tmp_path.glob("store/.doctor*"))
            assert found["cluster clocks"]["good"] and found["cluster versions"]["good"]


def test_missing_cluster_is_a_finding(tmp_path, capsys):
    code, out, _ = run(capsys, "doctor", world(tmp_path, cluster="127.0.0.1:1"), "--json")
    (found,) = [finding for finding in json.loads(out) if finding["what"] == "cluster"]
    assert code == 1 and not found["good"] and "127.0.0.1:1" in found["found"]
