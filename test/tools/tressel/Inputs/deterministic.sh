# Compiles the model of the second argument in several ways into the folder of the first.
set -e
compile() { tressel -q compile "$model" --cpu v3 -o "$@"; }
model=$2
cd "$1"
compile cold.tsl
compile warm.tsl
TRESSEL_NUM_THREADS=1 compile serial.tsl --no-cache
TRESSEL_NUM_THREADS=3 compile three.tsl --no-cache
for other in warm serial three; do cmp cold.tsl $other.tsl; done
