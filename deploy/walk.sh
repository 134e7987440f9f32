#!/bin/bash
# The first day with adjudge, on a fresh machine with Python 3.11+, git and make; prints the time of every step.
#   deploy/walk.sh            (works in a new folder and keeps it: the last line names it)
# Change: REPOSITORY, where to clone from (default: this checkout); MODEL, a model for the local vLLM judge (default: a tiny random
# one, whose verdicts mean nothing and which needs no GPU); VLLM, the Python of a vLLM installation (default: that of `make test-vllm`).
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
REPOSITORY=${REPOSITORY:-$here}
VLLM=${VLLM:-$HOME/.cache/adjudge/vllm/bin/python}
walk=$(mktemp -d "${TMPDIR:-/tmp}/adjudge-walk.XXXX")
cd "$walk"
exec 3>&1 >"$walk/log" 2>&1   # output of the steps goes to the log, times to the terminal
processes=()

finish() {
  code=$?
  for process in "${processes[@]}"; do kill "$process" 2>/dev/null && wait "$process" 2>/dev/null || true; done
  [ "$code" -eq 0 ] || { tail -20 "$walk/log"; echo "failed; see $walk/log"; } >&3
  exit "$code"
}
trap finish EXIT

step() {   # step NAME COMMAND...
  local name=$1 began=$EPOCHREALTIME
  shift
  echo "== $name"
  "$@"
  awk -v began="$began" -v ended="$EPOCHREALTIME" -v name="$name" 'BEGIN { printf "%8.1f s  %s\n", ended - began, name }' >&3
}

until_up() {   # until_up SECONDS COMMAND...
  local left=$1
  shift
  until "$@" >/dev/null 2>&1; do left=$((left - 1)); [ "$left" -gt 0 ]; sleep 1; done
}

free_port() { python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

finished() { "$@" || [ $? -eq 3 ]; }   # 3: finished, with something unscored

own_reports() {
  mkdir -p reports
  printf '%s\n' '{"id": "1", "prompt": "How do heat pumps work?", "gold": {"rubrics": [{"criterion": "It names the compressor.", "points": 2}, {"criterion": "It says that heat is moved, not made.", "points": 3}]}}' \
    '{"id": "2", "prompt": "What is tidal power?", "gold": {"rubrics": [{"criterion": "It names the moon.", "points": 2}]}}' > tasks.jsonl
  for system in A B C; do
    printf '{"task_id": "%s", "system": "%s", "text": "%s"}\n' 1 $system "# Heat pumps, by $system. A compressor moves heat; it is not made." \
      2 $system "# Tides, by $system. The moon pulls the sea; turbines turn." > reports/$system.jsonl
  done
  printf '%s\n' 'tasks: tasks.jsonl' 'reports: [reports/*.jsonl]' 'protocols: [rubrics]' 'fetch: {mode: off}' \
    'reward: {metric: score_clipped}' 'prices: {judge: {prompt_tokens_per_second: 5000, completion_tokens_per_second: 1000}}' > adjudge.yaml
  adjudge doctor adjudge.yaml
  adjudge plan adjudge.yaml
  finished adjudge evaluate adjudge.yaml
}

local_judge() {
  local model=${MODEL:-}
  [ -n "$model" ] || model=$(cd "$walk/adjudge" && "$VLLM" -m tests.tiny_model)
  port=$(free_port)
  HF_HUB_OFFLINE=${MODEL:+0} VLLM_CPU_KVCACHE_SPACE=1 VLLM_NO_USAGE_STATS=1 setsid "$VLLM" -m vllm.entrypoints.openai.api_server \
    --model "$model" --served-model-name judge --host 127.0.0.1 --port "$port" --enforce-eager --gpu-memory-utilization 0.3 \
    --no-enable-chunked-prefill --enable-prompt-tokens-details --structured-outputs-config '{"backend":"guidance","disable_any_whitespace":true}' &
  processes+=($!)
  until_up 480 curl -fs "http://127.0.0.1:$port/health"
  judge="openai:http://127.0.0.1:$port/v1#judge"
  finished adjudge evaluate adjudge.yaml --judge "$judge" --out runs/vllm
}

second_run() {
  finished adjudge evaluate adjudge.yaml --judge "$judge" --out runs/again --json > again.json
  python3 -c 'import json; assert json.load(open("again.json"))["from_judge"] == 0'
}

two_nodes() {
  export RAY_AUTH_MODE=token RAY_AUTH_TOKEN RAY_USAGE_STATS_ENABLED=0
  RAY_AUTH_TOKEN=$(python3 -c 'import secrets; print(secrets.token_hex(32))')
  local head common
  head=127.0.0.1:$(free_port)
  common="--block --node-ip-address=127.0.0.1 --num-cpus=2 --object-store-memory=80000000 --min-worker-port=0 --max-worker-port=0"
  # shellcheck disable=SC2086
  ray start --head --port="${head#*:}" --include-dashboard=false --temp-dir="$walk/ray" $common & processes+=($!)
  until_up 120 ray status --address="$head"
  # shellcheck disable=SC2086
  ray start --address="$head" $common & processes+=($!)
  until_up 120 sh -c "ray status --address=$head | grep -c '^ 1 node_' | grep -qx 2"
  finished adjudge evaluate adjudge.yaml --judge "$judge" --out runs/cluster --store cluster-store --cluster "$head"
  adjudge leaderboard runs/cluster --cluster "$head"
  sed -i 's/^cluster:.*//' adjudge.yaml && echo "cluster: $head" >> adjudge.yaml
  adjudge doctor adjudge.yaml
  sed -i 's/^cluster:.*//' adjudge.yaml
}

rewards() {
  export ADJUDGE_TOKEN=a-secret-of-mine
  port=$(free_port)
  adjudge serve adjudge.yaml --judge "$judge" --port "$port" & processes+=($!)
  until_up 120 curl -fs "http://127.0.0.1:$port/readyz"
  curl -fs "http://127.0.0.1:$port/v1/rewards" -H "Authorization: Bearer $ADJUDGE_TOKEN" \
    -d '{"items": [{"task_id": "1", "text": "A compressor moves heat."}]}'
  ! curl -fs "http://127.0.0.1:$port/v1/rewards" -d '{"items": []}'
}

numbers() {
  curl -fs "http://127.0.0.1:$port/metrics" -H "Authorization: Bearer $ADJUDGE_TOKEN" | tee metrics.txt | grep adjudge_rewards_total
  grep -h "^adjudge_scorecards_total\|^adjudge_questions_total\|^adjudge_tokens_total" runs/cluster/metrics.prom >&3
  grep -h "^adjudge_rewards_total\|^adjudge_requests_total" metrics.txt >&3
}

step "clone" git clone --quiet "$REPOSITORY" adjudge
step "make demo" make -C adjudge demo
PATH=$walk/adjudge/.venv/bin:$PATH
step "own reports, embedded judge" own_reports
step "a local vLLM judge" local_judge
step "a second run, from the store" second_run
step "(installing Ray)" "$walk/adjudge/.venv/bin/uv" pip install --quiet --python "$walk/adjudge/.venv/bin/python" -e 'adjudge[cluster]'
step "a cluster of two nodes" two_nodes
step "a reward server with a token" rewards
step "the dashboard's numbers" numbers
echo "$walk" >&3
