#!/bin/sh
# Make .venv from the lock files, or find in an instant that it is there. Needs Python 3.11 and git; called by `make env`.
set -eu
cd "${0%/*}/.."

say() { echo "environment: $*"; }
fail() { echo "error: $*" >&2 && exit 1; }

# What .venv is made from, and where: the programs in it carry its path. Written last, so that an interrupted installation
# is made again.
made_from() { (cd .venv && pwd -P) && cksum requirements.lock requirements-cpu.lock; }
if [ -x .venv/bin/python ] && [ "$(made_from)" = "$(cat .venv/made-from 2> /dev/null)" ]; then exit 0; fi

# Within an environment, the Python behind it: the environment may be the one that is to be made again.
code='import os, sys; path = sys.executable if sys.prefix == sys.base_prefix else os.path.realpath(sys.executable)
print(path) if sys.version_info[:2] == (3, 11) else sys.exit(1)'
base=
if [ -n "${PYTHON:-}" ]; then set -- "$PYTHON"; else set -- python3.11 python3 python; fi
for python in "$@"; do base=$("$python" -c "$code" 2> /dev/null) && break; done
[ -n "$base" ] || [ -z "${PYTHON:-}" ] || fail "PYTHON=$PYTHON is no Python 3.11"
[ -n "$base" ] || fail "Python 3.11 is missing: install it (python3.11, on Debian and Ubuntu with python3.11-venv)" \
  "or call make env PYTHON=/path/to/python3.11"
command -v git > /dev/null || fail "git is needed (results record the revision of the code): install git and try again"
"$python" -c 'import ensurepip, venv' 2> /dev/null ||
  fail "$python has no module ensurepip or venv: install it (on Debian and Ubuntu: python3.11-venv)"

say "making .venv"
rm -rf .venv
"$base" -m venv .venv
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
    *"No matching distribution found"*) say "this pip offers no CPU-only PyTorch; the index's build is installed (several GB on Linux)" ;;
    *) fail "requirements-cpu.lock: $output" ;;
  esac
fi
say "installing the packages of requirements.lock; this takes one to three minutes"
choose "! $cuda"
pip check > /dev/null || choose "$cuda"
problem=$(pip check) || fail "requirements.lock: the packages do not fit together: $problem"

say "compiling bytecode"
# Some packages ship files for other versions of Python, which do not compile and are never imported.
.venv/bin/python -m compileall -q -q -j 0 .venv/lib || true
made_from > .venv/made-from
say ".venv is ready"
