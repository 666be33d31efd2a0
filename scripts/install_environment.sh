#!/bin/sh
# Create .venv from the lock files, unless .venv is up to date. `make env` calls this program. It needs git, and a Python
# version that pyproject.toml allows, or uv, which downloads such a version.
set -eu
cd "${0%/*}/.."

say() { echo "environment: $*"; }
fail() { echo "error: $*" >&2 && exit 1; }

# Print the path of .venv and the checksums of the lock files; the path is needed because the programs in .venv contain it.
# The file .venv/made-from contains this text. The file is written last, so that an interrupted installation is repeated.
made_from() { (cd .venv && pwd -P) && cksum requirements.lock requirements-cpu.lock; }
if [ -x .venv/bin/python ] && [ "$(made_from)" = "$(cat .venv/made-from 2> /dev/null)" ]; then exit 0; fi

# Minor versions of Python that pyproject.toml allows: with 11 and 15, the versions 3.11 to 3.14.
minors=$(sed -n 's/^requires-python = ">=3\.\([0-9]*\),<3\.\([0-9]*\)"$/\1 \2/p' pyproject.toml)
oldest=${minors% *} newest=$((${minors#* } - 1))

# Print the path of a Python interpreter with an allowed version. If the interpreter is in an environment, print the
# interpreter from which this environment was created, because the environment may be the .venv that will be replaced.
code="import os, sys; path = sys.executable if sys.prefix == sys.base_prefix else os.path.realpath(sys.executable)
print(path) if (3, $oldest) <= sys.version_info[:2] <= (3, $newest) else sys.exit(1)"
base= names=python3 minor=$oldest
while [ "$minor" -le "$newest" ]; do names="python3.$minor $names" minor=$((minor + 1)); done
if [ -n "${PYTHON:-}" ]; then set -- "$PYTHON"; else set -- $names python; fi
# Choose the newest interpreter that can create environments (ensurepip); if there is none, the newest interpreter.
for needed in ensurepip sys; do
  for python in "$@"; do
    base=$("$python" -c "import $needed; $code" 2> /dev/null) && break 2
  done
done
[ -n "$base" ] || [ -z "${PYTHON:-}" ] || fail "PYTHON=$PYTHON is not Python 3.$oldest to 3.$newest"
uv=$(command -v uv || true)
[ -n "$base$uv" ] || fail "Python 3.$oldest to 3.$newest is missing: install Python (on Debian and Ubuntu also python3-venv) or uv," \
  "or call make env PYTHON=/path/to/python3.$newest"
command -v git > /dev/null || fail "git is missing, but results record the git revision of the code: install git and try again"
[ "$needed" = ensurepip ] || [ -n "$uv" ] ||
  fail "$python has no module ensurepip: install this module (on Debian and Ubuntu: ${python##*/}-venv) or uv"

if [ "$needed" = ensurepip ]; then
  say "creating .venv with $("$base" -V)"
  rm -rf .venv
  "$base" -m venv .venv
else
  say "creating .venv with uv, which downloads Python if it is missing"
  uv venv --quiet --clear --seed --python "${base:-3.$newest}" .venv
fi
if [ -t 1 ]; then quiet=; else quiet=-qq; fi
pip() { .venv/bin/python -m pip --disable-pip-version-check --no-input "$@"; }

# The lock file is complete, so pip need not resolve versions, and every downloaded file is compared with its hash. Source
# archives are built with the locked setuptools, because pip would download another version without checking its hash.
install() { pip install $quiet --no-deps --require-hashes --no-build-isolation --use-pep517 --no-compile --no-user "$@"; }

# Install those packages of requirements.lock whose line fulfils a condition of awk.
choose() { awk "/^[a-z]/ { own = $1 } own" requirements.lock > .venv/chosen.lock && install --requirement .venv/chosen.lock; }
cuda='/^(nvidia|cuda)-|^triton=/'

choose '/^setuptools=/'
# Request exactly the CPU build of PyTorch: otherwise, pip would prefer a file whose hash is listed in its index.
if ! output=$(install --requirement requirements-cpu.lock 2>&1); then
  case $output in
    # pip reports ResolutionImpossible if a file of constraints names PyTorch.
    *"No matching distribution found"* | *ResolutionImpossible*) say "pip finds no CPU-only build of PyTorch, so the build in pip's index is installed (several GB on Linux)" ;;
    *) fail "requirements-cpu.lock: $output" ;;
  esac
fi
say "installing the packages of requirements.lock; this takes one to three minutes"
choose "! $cuda"
pip check > /dev/null || choose "$cuda"
problem=$(pip check) || fail "requirements.lock: the packages are not compatible: $problem"

# Make `import hatchery` work in this environment from any folder, for example in a notebook.
pwd -P | sed 's|$|/scripts|' > "$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/hatchery.pth"

say "compiling bytecode"
# Ignore errors, because some packages contain files for other Python versions, which do not compile and are never imported.
.venv/bin/python -m compileall -q -q -j 0 .venv/lib || true
made_from > .venv/made-from
say ".venv is ready"
