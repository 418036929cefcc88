#!/bin/bash
# What needs a GPU beside the timings of kernel_session.sh, in one command and under nine minutes: the tests, right numbers over the whole shape suites, and
# every headline from text to verdict with its times. Run from the repository's root on the GPU machine:
#   bash bench/gpu_session.sh [CARRY]
# CARRY (default .carry) holds whl/ (wheels that the machine lacks, optional). Results go to $OUT (default bench/results). Each part is a process of its own under a limit, so
# that a fault ends that part only.
carry=${1:-.carry}; OUT=${OUT:-bench/results}; mkdir -p "$OUT"
export PYTHONUNBUFFERED=1 PYTHONPATH=$PWD:${PYTHONPATH:-} CAKE_CACHE=${CAKE_CACHE:-/tmp/cake-cache} CAKE_LEASES=/tmp/cake-leases
if ls "$carry"/whl/*.whl >/dev/null 2>&1; then
  python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/cake-site "$carry"/whl/*.whl
  export PYTHONPATH=$PYTHONPATH:/tmp/cake-site
fi
LIMIT=${LIMIT:-530}
part() {  # part NAME SECONDS COMMAND...
  local name=$1 seconds=$2 left=$((LIMIT - SECONDS)); shift 2
  [ $left -lt 15 ] && { echo "== $name: skipped, the session's time is spent"; return; }
  [ $seconds -gt $left ] && seconds=$left
  echo "== $name (limit $seconds s, at $SECONDS s): $*"
  timeout -k 5 "$seconds" "$@" 2>&1 | tee "$OUT/$name.txt" | tail -n 45
  echo "== $name: exit ${PIPESTATUS[0]} at $SECONDS s"
}
part device 30 python3 -m cake_backend.judge.probe
part judge 200 python3 -m bench.gpu_tests --out "$OUT/gpu-tests.json" --without-corpus  # needs pytest-xdist
part edges 150 python3 -m bench.edges --out "$OUT/edges.json" --budget 120
part evaluate 240 python3 -m bench.evaluate --out "$OUT/evaluate.json" --budget 200
cat "$OUT"/{device,judge,edges,evaluate}.txt >"$OUT/session.log" 2>/dev/null
rm -f "$OUT"/{device,judge,edges,evaluate}.txt
echo "== session done in $SECONDS s"
