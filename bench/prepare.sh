#!/bin/bash
# On a machine with network and NVRTC (no GPU needed): fill the folder that travels to the GPU machine.
#   bash bench/prepare.sh [FOLDER] [HAND_KERNELS]
# FOLDER (default .carry) gets whl/ (the peers' wheels for Python 3.12), cubins/ (Cake's candidates) and, where HAND_KERNELS names a folder
# of hand-written kernels with its build.py, hopper/ with the variants that are compared, compiled with nvcc.
set -e
folder=${1:-.carry}; hand=$2; python=${PYTHON:-.venv/bin/python}
mkdir -p "$folder/whl"
for package in flash-kmeans==0.3.1 flashlib==0.4.0 fa3-fwd==0.0.3 liger-kernel==0.8.5 sgl-deep-gemm==0.1.5 apache-tvm-ffi==0.1.11; do
  "$python" -m pip download -q --no-deps --only-binary=:all: --python-version 3.12 --implementation cp --abi cp312 --abi abi3 --abi none \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_24_x86_64 --platform manylinux2014_x86_64 -d "$folder/whl" "$package"
done
rm -rf "$folder/cubins"
"$python" -m bench.build --out "$folder/cubins"
if [ -n "$hand" ]; then
  rm -rf "$folder/hopper" && mkdir -p "$folder/hopper"
  cp "$hand"/*.py "$hand"/*.cu "$hand"/*.cuh "$folder/hopper/" && chmod -R u+w "$folder/hopper"
  (cd "$folder/hopper" && python3 build.py g_base g_cl1 k_base k_cl1 k_n4x2)
fi
du -sh "$folder"
