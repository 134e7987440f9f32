"""The files in deploy/, each checked by the tool that reads it, without a cluster."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.deployment import DEPLOY, checked, tool
from tests.processes import free_port
from tests.wheel import cloned
from tests.worlds import ADJUDGE, world

ROOT = Path(__file__).parents[1]
FILES = sorted(path for path in DEPLOY.iterdir() if path.suffix not in (".md", ".lock", ".csv"))


@pytest.fixture
def prometheus_files(tmp_path) -> Path:
    for name in ("prometheus.yml", "alerts.yml"):
        shutil.copy(DEPLOY / name, tmp_path)
    (tmp_path / "token").write_text("secret")
    return tmp_path


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_file_names_its_command_and_what_to_change(path):
    text = path.read_text()
    head = json.loads(text)["description"] if path.suffix == ".json" else text[:1200]
    assert path.name in head or "promtool" in head or path.suffix == ".Dockerfile", head
    assert "Change:" in head


@pytest.mark.parametrize("name", ["rayjob.yaml", "rayservice.yaml"])
def test_pods_of_ray_kinds_fit_the_published_pod_schema(name):
    kubernetes = pytest.importorskip("kubernetes_validate")
    manifest = yaml.safe_load((DEPLOY / name).read_text())
    assert manifest["apiVersion"] == "ray.io/v1"
    spec = manifest["spec"]
    cluster = spec.get("rayClusterSpec") or spec["rayClusterConfig"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    for number, group in enumerate(groups):
        pod = {"apiVersion": "v1", "kind": "Pod", **group["template"]}
        pod["metadata"] = {"name": f"pod{number}", **pod.get("metadata", {})}
        kubernetes.validate(pod, "1.33", strict=True)
        assert pod["spec"]["securityContext"]["runAsNonRoot"]
        volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
        for container in pod["spec"]["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
    broken = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containrs": []}}
    with pytest.raises(kubernetes.ValidationError):
        kubernetes.validate(broken, "1.33", strict=True)


def test_ray_service_names_a_valid_application_and_options():
    schema = pytest.importorskip("ray.serve.schema")
    spec = yaml.safe_load((DEPLOY / "rayservice.yaml").read_text())["spec"]
    config = schema.ServeDeploySchema(**yaml.safe_load(spec["serveConfigV2"]))
    module, _, name = config.applications[0].import_path.partition(":")
    made = getattr(__import__(module, fromlist=[name]), name)(config.applications[0].args)
    assert made._bound_deployment.name == config.applications[0].deployments[0].name


def test_cluster_fits_the_schema_of_ray():
    util = pytest.importorskip("ray.autoscaler._private.util")
    config = util.prepare_config(yaml.safe_load((DEPLOY / "ray-cluster.yaml").read_text()))
    util.validate_config(config)


@pytest.mark.parametrize("name", ["cpu.Dockerfile", "cuda.Dockerfile"])
def test_dockerfiles_are_linted_and_do_not_run_as_root(name):
    checked(tool("hadolint"), DEPLOY / name)
    lines = (DEPLOY / name).read_text().splitlines()
    assert [line for line in lines if line.startswith("USER")] == ["USER 10001"]
    assert sum(line.startswith("FROM") for line in lines) == 2
    (installed,) = [line for line in lines if "install.sh" in line and line.startswith("RUN")]
    assert (DEPLOY / installed.split()[-1]).is_file()


@pytest.mark.parametrize("name", ["install.sh", "slurm.sh", "walk.sh"])
def test_scripts_are_valid_and_executable(name):
    first = (DEPLOY / name).read_text().splitlines()[0]
    checked("bash" if "bash" in first else "sh", "-n", DEPLOY / name)
    assert os.access(DEPLOY / name, os.X_OK)


@pytest.mark.timeout(300)
def test_image_install_steps_work_in_a_fresh_folder(tmp_path):
    source = cloned(tmp_path / "source")
    target = tmp_path / "opt"
    environment = {**os.environ, "PYTHON": sys.executable}
    command = [source / "deploy" / "install.sh", target, "requirements.lock"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    doctor = json.loads(checked(target / "bin" / "adjudge", "doctor", "--json"))
    assert all(finding["good"] for finding in doctor if finding["what"] != "vllm")


def test_prometheus_accepts_its_configuration_and_rules(prometheus_files):
    promtool = tool("promtool")
    checked(promtool, "check", "config", prometheus_files / "prometheus.yml")
    assert "11 rules" in checked(promtool, "check", "rules", prometheus_files / "alerts.yml")


def series(text: str, values: str) -> dict[str, str]:
    return {"series": text, "values": values}


def test_alerts_fire_when_due_and_not_before(prometheus_files):
    judge = 'adjudge_questions_total{instance="a", judge="j", reason="%s"}'
    case = {
        "interval": "1m",
        "input_series": [
            series(judge % "", "0+100x30"),
            series(judge % "judge_timeout", "0x10 0+20x20"),
            series('adjudge_scorecards_in_flight{instance="b"}', "3x40"),
            series('adjudge_questions_total{instance="b", reason=""}', "7x40"),
            series('adjudge_scorecards_total{instance="b"}', "1x40"),
        ],
        "alert_rule_test": [
            {"eval_time": "9m", "alertname": "AdjudgeJudgeFails", "exp_alerts": []},
            alert("28m", "AdjudgeJudgeFails", "page", "a"),
            alert("38m", "AdjudgeStalled", "page", "b"),
        ],
    }
    path = prometheus_files / "tests.yml"
    path.write_text(yaml.safe_dump({"rule_files": ["alerts.yml"], "tests": [case]}))
    checked(tool("promtool"), "test", "rules", path)


def alert(when: str, name: str, severity: str, instance: str) -> dict[str, object]:
    rules = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"][0]["rules"]
    (rule,) = [rule for rule in rules if rule["alert"] == name]
    summary = rule["annotations"]["summary"].replace("{{ $labels.instance }}", instance)
    labels = {"severity": severity, "instance": instance}
    expected = [{"exp_labels": labels, "exp_annotations": {"summary": summary}}]
    return {"eval_time": when, "alertname": name, "exp_alerts": expected}


def test_every_alert_is_in_the_handbook():
    guide = (DEPLOY / "README.md").read_text()
    rules = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"][0]["rules"]
    assert [rule["alert"] for rule in rules if rule["alert"] not in guide] == []


@pytest.mark.parametrize(
    ("name", "extras"),
    [("requirements.lock", ("cluster", "files")), ("requirements-cuda.lock", ("cluster", "files", "vllm"))],
)
def test_lock_pins_every_requirement_by_hash_without_hosts(name, extras):
    packaging = pytest.importorskip("packaging.requirements")
    text = (DEPLOY / name).read_text()
    pins = re.findall(r"^([a-z0-9][a-z0-9.\-]*)==(\S+?)(?: ;.*)? \\$", text, re.MULTILINE)
    assert len(pins) > 50 and "://" not in text
    assert len(re.findall(r"^[a-z0-9].*[^\\]$", text, re.MULTILINE)) == 0
    locked: dict[str, list[str]] = {}
    for package, version in pins:
        locked.setdefault(package, []).append(version)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    for line in [*project["dependencies"], *(line for extra in extras for line in optional[extra])]:
        wanted = packaging.Requirement(line)
        assert any(version in wanted.specifier for version in locked[wanted.name.lower()]), line


SRUN = """#!/bin/bash
while [[ $1 == -* ]]; do [[ $1 == -w ]] && shift; shift; done
case "$*" in
  hostname*) echo 127.0.0.1 ;;
  ray\\ start*) exec "$@" --node-ip-address=127.0.0.1 --object-store-memory=80000000 $(
    [[ $* == *--head* ]] && echo "--include-dashboard=false --temp-dir=$RAYS") ;;
  *) exec "$@" ;;
esac
"""


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_slurm_script_evaluates_on_its_nodes(tmp_path):
    """With stand-ins for Slurm's own commands, which start everything on this machine."""
    pytest.importorskip("ray")
    adjudge = f'#!/bin/sh\nexec {sys.executable} -P -m {ADJUDGE[-1]} "$@"\n'
    commands = {"srun": SRUN, "scontrol": "#!/bin/sh\necho here\n", "adjudge": adjudge}
    for name, text in commands.items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    config = world(tmp_path, systems=2, tasks=2, cluster={"evaluators": 1})
    rays = tempfile.mkdtemp()  # it holds sockets, for which the path of the test's own folder is too long
    environment = {
        **os.environ,
        "PATH": f"{tmp_path / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "ADJUDGE": str(tmp_path),
        "RAYS": rays,
        "RAY_PORT": str(free_port()),
        "SLURM_JOB_NODELIST": "here",
        "SLURM_CPUS_PER_TASK": "2",
    }
    log = (tmp_path / "log").open("wb")
    process = subprocess.Popen(
        [DEPLOY / "slurm.sh", config],
        env=environment,
        stdout=log,
        stderr=log,
    )
    try:
        code = process.wait(timeout=120)
    finally:
        process.terminate()
        process.wait(60)
        log.close()
        shutil.rmtree(rays, ignore_errors=True)
    assert code == 0 and (tmp_path / "run" / "scores.parquet").exists(), (tmp_path / "log").read_text()
