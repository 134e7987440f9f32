#!/bin/sh
# Install this checkout into a new virtual environment, with every package at the version and hash of a lock file.
#   deploy/install.sh /opt/adjudge requirements.lock
# Change: the folder; use requirements-cuda.lock for a vLLM judge on GPUs. PYTHON names the interpreter.
set -eu
target=$1
lock=$(dirname "$0")/$2
checkout=$(dirname "$0")/..
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"${PYTHON:-python3}" -m venv "$tools"
"$tools/bin/python" -m pip install --quiet --disable-pip-version-check uv==0.13.9
"$tools/bin/uv" venv --quiet --python "${PYTHON:-python3}" "$target"
"$tools/bin/uv" pip sync --quiet --python "$target/bin/python" --require-hashes "$lock"
"$tools/bin/uv" pip install --quiet --python "$target/bin/python" --no-deps "$checkout"
"$target/bin/adjudge" --version
