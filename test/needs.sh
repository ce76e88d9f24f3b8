#!/bin/sh
# needs.sh [--module NAME]... [--file PATH]... [--program NAME]... [--release TYPE] -- COMMAND...
# Runs a test's command where all that it needs is there: modules of the oracles' Python (build/venv), files, programs, and Release
# as the type of the build that it tests. Else it says what is missing and ends with 77, which ctest reports as skipped. Modules are
# found and not imported: one that is there and cannot be imported is a failure of the test.
python=$(dirname "$0")/../build/venv/bin/python
modules= missing=
while [ $# -gt 0 ]; do
  case $1 in
    --module) modules="$modules $2" ;;
    --file) [ -e "$2" ] || missing="$missing $2" ;;
    --program) command -v "$2" >/dev/null || missing="$missing $2" ;;
    --release) [ "$2" = Release ] || { echo "skipped: needs a Release build, and this one is $2"; exit 77; } ;;
    --) shift; break ;;
    *) echo "needs.sh: unknown option $1" >&2; exit 2 ;;
  esac
  [ $# -ge 2 ] || { echo "needs.sh: $1 needs a value" >&2; exit 2; }
  shift 2
done
[ $# -gt 0 ] || { echo "needs.sh: there is no command" >&2; exit 2; }
if [ -n "$modules" ]; then
  if [ -x "$python" ]; then
    absent=$("$python" -c 'import importlib.util, sys; print(*(m for m in sys.argv[1:] if not importlib.util.find_spec(m)))' $modules) || exit 1
    missing="$missing${absent:+ $absent (Python)}"
  else
    missing="$missing build/venv"
  fi
fi
if [ -n "$missing" ]; then
  echo "skipped: missing:$missing; ./dev setup gets it"
  exit 77
fi
exec "$@"
