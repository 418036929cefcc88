#!/bin/bash
# On a machine with network and NVRTC (no GPU needed): fill the folder that travels to the GPU machine.
#   bash bench/prepare.sh [FOLDER] [HAND_KERNELS]
# WINNERS=1 builds only what won a shape before, and the headlines: what one session can time again. FOLDER (default .carry) gets whl/ (the peers' wheels for Python 3.12), whl-cute/ (CuTe DSL, 75 MB), cubins/ (Cake's candidates), with nvcc
# flashinfer/ (FlashInfer's generated programs for the tiny GEMM shapes) and, where HAND_KERNELS names a folder
# of hand-written kernels with its build.py, hopper/ with the variants that are compared, compiled with nvcc.
set -e
folder=${1:-.carry}; hand=$2; python=${PYTHON:-.venv/bin/python}
fetch() {
  "$python" -m pip download -q --no-deps --only-binary=:all: --python-version 3.12 --implementation cp --abi cp312 --abi abi3 --abi none \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_24_x86_64 --platform manylinux2014_x86_64 -d "$1" "$2"
}
mkdir -p "$folder/whl" "$folder/whl-cute"
for package in flash-kmeans==0.3.1 flashlib==0.4.0 fa3-fwd==0.0.3 liger-kernel==0.8.5 sgl-deep-gemm==0.1.5 apache-tvm-ffi==0.1.11; do
  fetch "$folder/whl" "$package"
done
for package in nvidia-cutlass-dsl==4.5.2 nvidia-cutlass-dsl-libs-base==4.5.2; do fetch "$folder/whl-cute" "$package"; done
if command -v nvcc >/dev/null; then
  scratch=$(mktemp -d) && fetch "$scratch" flashinfer-python==0.7.4
  "$python" -m bench.flashinfer_programs "$scratch"/flashinfer_python-*.whl --tvm-ffi "$folder"/whl/apache_tvm_ffi-*.whl --out "$folder/flashinfer"
  rm -rf "$scratch"
fi
rm -rf "$folder/cubins"
"$python" -m bench.build --out "$folder/cubins" ${WINNERS:+--winners}
if [ -n "$hand" ]; then
  rm -rf "$folder/hopper" && mkdir -p "$folder/hopper"
  cp "$hand"/*.py "$hand"/*.cu "$hand"/*.cuh "$folder/hopper/" && chmod -R u+w "$folder/hopper"
  (cd "$folder/hopper" && python3 build.py g_base g_cl1 k_base k_cl1 k_n4x2)
fi
du -sh "$folder"
