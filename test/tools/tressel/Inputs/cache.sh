# One folder of kernels through its life; the first argument is the test's folder.
set -e
cd "$1"
tressel cache info
tressel -v compile m.mlir -o cold.tsl
tressel -v compile m.mlir -o warm.tsl
tressel -v compile m.mlir -o none.tsl --no-cache
cmp cold.tsl warm.tsl
cmp cold.tsl none.tsl
tressel cache
test "$(tressel cache path)" = "$1/cache"
for entry in cache/??/*; do echo damage >>"$entry"; done
tressel cache verify
tressel -v run m.mlir --random-inputs 1 >/dev/null
tressel cache --json
tressel cache clear
tressel cache
