#!/bin/bash
# FP8 GEMM variants by group of shapes, from the repository's root on the GPU machine, under LIMIT (default 150) seconds:
#   bash bench/fp8_session.sh BUILT [GROUP:SHAPE,SHAPE,.. ...]
# BUILT holds one folder of built candidates a group; a group is timed on its shapes. Results go to $OUT. Wheels of the peers: $CARRY/whl.
built=$1; shift; carry=${CARRY:-.carry}; OUT=${OUT:-bench/results}; mkdir -p "$OUT"
export PYTHONUNBUFFERED=1 PYTHONPATH=$PWD:${PYTHONPATH:-} CAKE_CACHE=${CAKE_CACHE:-/tmp/cake-cache}
if ls "$carry"/whl/*.whl >/dev/null 2>&1 && [ ! -d /tmp/cake-site ]; then
  python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target /tmp/cake-site "$carry"/whl/*.whl
fi
[ -d /tmp/cake-site ] && export PYTHONPATH=$PYTHONPATH:/tmp/cake-site
LIMIT=${LIMIT:-150}
for entry in "$@"; do
  group=${entry%%:*}; chosen=(); for s in $(echo "${entry#*:}" | tr , ' '); do chosen+=(--shape "$s"); done
  left=$((LIMIT - SECONDS)); [ $left -lt 15 ] && { echo "== $group: skipped, the time is spent"; continue; }
  echo "== $group at $SECONDS s"
  timeout -k 5 "$left" python3 -m bench.run "${FAMILY:-gemm_fp8}" --built "$built/$group" --rounds "${ROUNDS:-8}" --budget "${BUDGET:-1.5}" \
    --out "$OUT/$group.json" "${chosen[@]}" 2>&1 | tee "$OUT/$group.txt" | grep -v Warning
  echo "== $group: exit ${PIPESTATUS[0]} at $SECONDS s"
done
