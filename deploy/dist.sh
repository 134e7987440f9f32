#!/bin/sh
# Build the wheel and the sdist of a commit; equal commits give equal bytes, wherever and whenever they are built.
#   deploy/dist.sh dist
# Change: the folder; a second argument names a commit other than HEAD. UV names the uv to build with.
set -eu
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
commit=${2:-HEAD}
uv=${UV:-.venv/bin/uv}
umask 022
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit")
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/source"
git archive "$commit" | tar -x -C "$work/source"
"$uv" build --quiet --wheel --out-dir "$out" "$work/source"
"$uv" build --quiet --sdist --out-dir "$work" "$work/source"
for sdist in "$work"/*.tar.gz; do   # setuptools records the build's times and owners in it
  tar -x -z -C "$work" -f "$sdist"
  name=$(basename "$sdist" .tar.gz)
  tar -c -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w \
    --format=ustar "$name" | gzip -n -9 > "$out/$name.tar.gz"
done
