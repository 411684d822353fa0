#!/usr/bin/env bash
# Build the wheel, install it into an environment of its own, and run the default tests against it from elsewhere.
#   wheel.sh PYTHON        PYTHON: the interpreter of the development environment (it has the build tools)
set -euo pipefail
python=${1:?path of the development interpreter}
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m build --quiet --wheel --no-isolation --outdir "$work/dist" "$root"
"$python" -m venv "$work/venv"
uv=$(command -v uv || echo "$(dirname "$python")/uv")
"$uv" pip install --quiet --python "$work/venv/bin/python" --require-hashes --requirement "$root/requirements.lock"
"$uv" pip install --quiet --python "$work/venv/bin/python" --no-deps "$work"/dist/*.whl
cp -R "$root/tests" "$work/tests"
cp "$root/pyproject.toml" "$work/pyproject.toml"
for extra in docs runbooks bench; do ln -s "$root/$extra" "$work/$extra"; done
cd "$work"
"$work/venv/bin/python" - "$work" <<'P'
import importlib.resources, pathlib, sys
import sentinel
where = pathlib.Path(sentinel.__file__).resolve()
assert where.is_relative_to(pathlib.Path(sys.argv[1]).resolve() / "venv"), f"not the wheel's: {where}"
data = importlib.resources.files("sentinel") / "_data"
assert (data / "personas" / "gode" / "task.md").is_file(), "the wheel lacks personas/"
assert (data / "launchagents").is_dir(), "the wheel lacks launchagents/"
P
PATH="$work/venv/bin:$PATH" "$work/venv/bin/python" -m pytest -q -m "not real" -p no:cacheprovider
