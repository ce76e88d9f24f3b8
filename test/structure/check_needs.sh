#!/bin/sh
# check_needs.sh NEEDS: needs.sh runs a command where all is there, says what is missing otherwise, and hides no failure.
needs=$1 wrong=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/test" && cp "$needs" "$folder/test/needs.sh" # without build/venv
expect() { # STATUS TEXT ARGUMENT...
  want=$1 text=$2
  shift 2
  said=$("$folder/test/needs.sh" "$@" 2>&1)
  got=$?
  case $said in *"$text"*) ;; *) got="$got and says '$said'" ;; esac
  [ "$got" = "$want" ] || { echo "WRONG: '$*' ends with $got, not $want and '$text'"; wrong=1; }
}
expect 0 done -- echo done
expect 3 '' --file "$folder" --program sh -- sh -c 'exit 3'
expect 77 "skipped: missing: $folder/none nobody-s-program" --file "$folder/none" --program nobody-s-program -- echo done
expect 77 'skipped: missing: build/venv' --module numpy -- echo done
expect 0 done --release Release -- echo done
expect 77 'needs a Release build' --release Debug -- echo done
expect 2 unknown --fil "$folder" -- echo done
expect 2 'no command' --file "$folder" --
mkdir -p "$folder/build/venv/bin" && ln -s "$(command -v python3)" "$folder/build/venv/bin/python"
expect 0 done --module json --module struct -- echo done
expect 77 'skipped: missing: no_such_module (Python)' --module json --module no_such_module -- echo done
exit $wrong
