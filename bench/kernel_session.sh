#!/bin/bash
# Families against their peers, by default all of docs/performance.md, under nine minutes (built with `bench.build --winners`), from the repository's root on the GPU machine:
#   bash bench/kernel_session.sh [CARRY] [FAMILY ...]
# CARRY (default .carry) is what `bench/prepare.sh` filled; results go to $OUT (default bench/results). ROUNDS (default 21) is for each shape,
# BUDGET (default 9) the seconds of timing a shape, SHAPES a list of shape names (default: all). Each family is a process of its own under a limit.
carry=${1:-.carry}; shift; families=${*:-attention kmeans_assign tiny_gemm gemm gemm_nn gemm_fp8 softmax add_rmsnorm rmsnorm silu_mul_quant}
OUT=${OUT:-bench/results}; mkdir -p "$OUT"
export PYTHONUNBUFFERED=1 PYTHONPATH=$PWD:${PYTHONPATH:-} CAKE_CACHE=${CAKE_CACHE:-/tmp/cake-cache}
for wheel in "$carry"/whl*/*.whl; do  # only what an earlier call on this machine has not installed
  seen=/tmp/cake-site/.seen/$(basename "$wheel"); [ -f "$wheel" ] && [ ! -f "$seen" ] || continue
  python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/cake-site "$wheel"
  mkdir -p /tmp/cake-site/.seen && touch "$seen"
done
[ -d /tmp/cake-site ] && export PYTHONPATH=$PYTHONPATH:/tmp/cake-site:/tmp/cake-site/nvidia_cutlass_dsl/python_packages
[ -d "$carry/hopper/bin" ] && export CAKE_HAND_KERNELS=$PWD/$carry/hopper
[ -f "$carry/flashinfer/shapes.json" ] && export CAKE_FLASHINFER=$PWD/$carry/flashinfer
LIMIT=${LIMIT:-530}; chosen=(); for s in ${SHAPES:-}; do chosen+=(--shape "$s"); done
for family in $families; do
  left=$((LIMIT - SECONDS)); [ $left -lt 20 ] && { echo "== $family: skipped, the session's time is spent"; continue; }
  echo "== $family at $SECONDS s"
  file=${family/kmeans_assign/kmeans}  # the name that bench.performance reads
  timeout -k 5 "$left" python3 -m bench.run "$family" --built "$carry/cubins" --rounds "${ROUNDS:-21}" --budget "${BUDGET:-9}" \
    --out "$OUT/$file.json" "${chosen[@]}" 2>&1 | tee "$OUT/$family.txt" | grep -v Warning
  echo "== $family: exit ${PIPESTATUS[0]} at $SECONDS s"
done
