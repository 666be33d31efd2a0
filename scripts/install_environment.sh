#!/bin/sh
# Make .venv from the lock files, or find in an instant that it is there. Needs git, and a Python that pyproject.toml allows or
# uv, which fetches one; called by `make env`.
set -eu
cd "${0%/*}/.."

say() { echo "environment: $*"; }
fail() { echo "error: $*" >&2 && exit 1; }

# What .venv is made from, and where: the programs in it carry its path. Written last, so that an interrupted installation
# is made again.
made_from() { (cd .venv && pwd -P) && cksum requirements.lock requirements-cpu.lock; }
if [ -x .venv/bin/python ] && [ "$(made_from)" = "$(cat .venv/made-from 2> /dev/null)" ]; then exit 0; fi

# The versions that pyproject.toml allows, such as 11 and 15: 3.11 up to but without 3.15.
minors=$(sed -n 's/^requires-python = ">=3\.\([0-9]*\),<3\.\([0-9]*\)"$/\1 \2/p' pyproject.toml)
oldest=${minors% *} newest=$((${minors#* } - 1))

# Within an environment, the Python behind it: the environment may be the one that is to be made again.
code="import os, sys; path = sys.executable if sys.prefix == sys.base_prefix else os.path.realpath(sys.executable)
print(path) if (3, $oldest) <= sys.version_info[:2] <= (3, $newest) else sys.exit(1)"
base= names=python3 minor=$oldest
while [ "$minor" -le "$newest" ]; do names="python3.$minor $names" minor=$((minor + 1)); done
if [ -n "${PYTHON:-}" ]; then set -- "$PYTHON"; else set -- $names python; fi
# The newest that can make environments; failing that, the newest.
for needed in ensurepip sys; do
  for python in "$@"; do
    base=$("$python" -c "import $needed; $code" 2> /dev/null) && break 2
  done
done
[ -n "$base" ] || [ -z "${PYTHON:-}" ] || fail "PYTHON=$PYTHON is no Python 3.$oldest to 3.$newest"
uv=$(command -v uv || true)
[ -n "$base$uv" ] || fail "Python 3.$oldest to 3.$newest is missing: install one (on Debian and Ubuntu with python3-venv) or uv," \
  "or call make env PYTHON=/path/to/python3.$newest"
command -v git > /dev/null || fail "git is needed (results record the revision of the code): install git and try again"
[ "$needed" = ensurepip ] || [ -n "$uv" ] ||
  fail "$python has no module ensurepip: install it (on Debian and Ubuntu: ${python##*/}-venv) or uv"

if [ "$needed" = ensurepip ]; then
  say "making .venv of $("$base" -V)"
  rm -rf .venv
  "$base" -m venv .venv
else
  say "making .venv with uv, which fetches a Python if none is there"
  uv venv --quiet --clear --seed --python "${base:-3.$newest}" .venv
fi
if [ -t 1 ]; then quiet=; else quiet=-qq; fi
pip() { .venv/bin/python -m pip --disable-pip-version-check --no-input "$@"; }

# The lock is complete, so pip has nothing to resolve, and every file is compared with its hash. Source archives are built
# with the locked setuptools instead of one that pip would fetch unchecked.
install() { pip install $quiet --no-deps --require-hashes --no-build-isolation --use-pep517 --no-compile --no-user "$@"; }

# The packages of requirements.lock that a condition of awk chooses.
choose() { awk "/^[a-z]/ { own = $1 } own" requirements.lock > .venv/chosen.lock && install --requirement .venv/chosen.lock; }
cuda='/^(nvidia|cuda)-|^triton=/'

choose '/^setuptools=/'
# pip must be asked for exactly the CPU build: it would prefer a file whose hash its index lists to one from a plain folder.
if ! output=$(install --requirement requirements-cpu.lock 2>&1); then
  case $output in
    # The second where a file of constraints names PyTorch.
    *"No matching distribution found"* | *ResolutionImpossible*) say "this pip offers no CPU-only PyTorch; the index's build is installed (several GB on Linux)" ;;
    *) fail "requirements-cpu.lock: $output" ;;
  esac
fi
say "installing the packages of requirements.lock; this takes one to three minutes"
choose "! $cuda"
pip check > /dev/null || choose "$cuda"
problem=$(pip check) || fail "requirements.lock: the packages do not fit together: $problem"

# `import hatchery` works in this environment wherever it is called, in a notebook say.
pwd -P | sed 's|$|/scripts|' > "$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/hatchery.pth"

say "compiling bytecode"
# Some packages ship files for other versions of Python, which do not compile and are never imported.
.venv/bin/python -m compileall -q -q -j 0 .venv/lib || true
made_from > .venv/made-from
say ".venv is ready"
