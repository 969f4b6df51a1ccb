#!/usr/bin/env bash
# Packs TileLang and the few wheels that an offline CUDA machine (Python 3.12, torch 2.11) lacks into one archive of about 38 MB.
# Unpack it there into a folder and put that folder on PYTHONPATH.
#   scripts/pack_tilelang.sh OUT.tar.xz [PYTHON]
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: $0 OUT.tar.xz [PYTHON]" >&2; exit 2; }
out=$(realpath -m "$1")
python=${2:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
platforms=(--platform manylinux2014_x86_64 --platform manylinux1_x86_64)
for glibc in 28 27 24 17; do platforms+=(--platform "manylinux_2_${glibc}_x86_64"); done
"$python" -m pip download -q --no-deps --only-binary=:all: --python-version 3.12 --implementation cp "${platforms[@]}" -d "$work/wheels" \
  tilelang==0.1.15 z3-solver==4.15.4.0 apache-tvm-ffi==0.1.12 torch-c-dlpack-ext==0.1.5
mkdir "$work/site"
for wheel in "$work"/wheels/*.whl; do "$python" -m zipfile -e "$wheel" "$work/site"; done
cd "$work/site"
# The z3 wheel holds its library twice; TVM's sources are not needed, its headers are (kernels are saved to the cache with them).
rm -rf z3_solver-*.data z3/include tilelang/3rdparty/tvm/src
[ -e z3/lib/libz3.so.4.15 ] && ln -sf libz3.so.4.15 z3/lib/libz3.so
tar -cf - . | xz -T0 -6 >"$out.part"
mv "$out.part" "$out"
ls -l "$out"
