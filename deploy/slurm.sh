#!/bin/bash
# A Ray cluster inside one Slurm job: the first node is the head and runs the evaluation.
#   sbatch deploy/slurm.sh /shared/adjudge.yaml
# Change: nodes, GPUs per node, time and partition below; `judge: replicas:` in the configuration to the number of GPUs of all
# nodes. ADJUDGE names the installation (deploy/install.sh); it and the configuration's paths are on a file system that all nodes
# can reach. The job is stopped shortly before its time limit and queued again; it resumes where it stopped.
#SBATCH --job-name=adjudge
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --gpus-per-node=1
#SBATCH --time=08:00:00
#SBATCH --signal=B:TERM@120
#SBATCH --requeue
set -euo pipefail
config=${1:?"the configuration: sbatch deploy/slurm.sh CONFIG"}
export PATH=${ADJUDGE:-/opt/adjudge}/bin:$PATH RAY_USAGE_STATS_ENABLED=0 RAY_AUTH_MODE=token
RAY_AUTH_TOKEN=$(python3 -c 'import secrets; print(secrets.token_hex(32))')
export RAY_AUTH_TOKEN
cpus=${SLURM_CPUS_PER_TASK:-1} gpus=${SLURM_GPUS_PER_NODE:-0} port=${RAY_PORT:-6379}
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=$(srun --nodes=1 --ntasks=1 -w "${nodes[0]}" hostname --ip-address | awk '{print $1}')

srun --nodes=1 --ntasks=1 -w "${nodes[0]}" \
  ray start --head --node-ip-address="$head" --port="$port" --num-cpus="$cpus" --num-gpus="$gpus" --block &
start=$!
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
for node in "${nodes[@]:1}"; do
  srun --nodes=1 --ntasks=1 -w "$node" \
    ray start --address="$head:$port" --num-cpus="$cpus" --num-gpus="$gpus" --block &
done
until ray status --address="$head:$port" 2>/dev/null | grep -c '^ 1 node_' | grep -qx "${#nodes[@]}"; do
  kill -0 $start || exit 1
  sleep 2
done

code=0
srun --overlap --nodes=1 --ntasks=1 -w "${nodes[0]}" adjudge evaluate "$config" --cluster "$head:$port" &
evaluation=$!
trap 'kill -TERM $evaluation; wait $evaluation || true; scontrol requeue "$SLURM_JOB_ID"; exit 0' TERM
wait $evaluation || code=$?
exit "$code"
