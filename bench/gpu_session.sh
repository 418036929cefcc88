#!/bin/bash
# Everything that needs a GPU, in one command and under nine minutes. Run from the repository's root on the GPU machine:
#   bash bench/gpu_session.sh [CARRY]
# CARRY (default .carry) holds what was made elsewhere: whl/ (peers' wheels, optional), cubins/ (bench.build), hopper/ (hand-written
# kernels with bin/*.cubin, optional). Results go to $OUT (default bench/results). Each part is a process of its own under a limit, so
# that a fault ends that part only.
carry=${1:-.carry}; OUT=${OUT:-bench/results}; mkdir -p "$OUT"
export PYTHONUNBUFFERED=1 PYTHONPATH=$PWD:${PYTHONPATH:-} CAKE_CACHE=${CAKE_CACHE:-/tmp/cake-cache} CAKE_LEASES=/tmp/cake-leases
if ls "$carry"/whl/*.whl >/dev/null 2>&1; then
  python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/cake-site "$carry"/whl/*.whl
  export PYTHONPATH=$PYTHONPATH:/tmp/cake-site
fi
[ -d "$carry/hopper/bin" ] && export CAKE_HAND_KERNELS=$PWD/$carry/hopper
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
part judge 140 python3 -m pytest -c /dev/null --rootdir=. --import-mode=importlib -q --maxfail=6 -m "not slow" tests/gpu
part gemm 90 python3 -m bench.run gemm --built "$carry/cubins" --rounds "${ROUNDS:-25}" --budget 25 --out "$OUT/gemm.json"
part kmeans 90 python3 -m bench.run kmeans_assign --built "$carry/cubins" --rounds "${ROUNDS:-25}" --budget 30 --out "$OUT/kmeans.json"
part rmsnorm 130 python3 -m bench.run rmsnorm --built "$carry/cubins" --rounds "${ROUNDS:-25}" --budget 12 --out "$OUT/rmsnorm.json"
part evaluate 200 python3 -m bench.evaluate --out "$OUT/evaluate.json" --budget 150
for f in gemm kmeans rmsnorm; do [ -f "$OUT/$f.json" ] && python3 -m bench.report "$OUT/$f.json"; done
cat "$OUT"/{device,judge,gemm,kmeans,rmsnorm,evaluate}.txt >"$OUT/session.log" 2>/dev/null
rm -f "$OUT"/{device,judge,gemm,kmeans,rmsnorm,evaluate}.txt
echo "== session done in $SECONDS s"
