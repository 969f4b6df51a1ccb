#!/usr/bin/env bash
# Everything that needs a real GPU, in one go: the puzzles' solutions on device="cuda" and the corpus, held against the simulator and the oracles,
# then the operators against float64 references. Records go to tests/gpu/records (or to the folder given).
#   tests/gpu/run.sh [FOLDER]
# Needs torch with CUDA, nvcc, and TileLang on the path (scripts/pack_tilelang.sh makes an archive for a machine that is offline).
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
records=${1:-$here/records}
python=${PYTHON:-python3}
mkdir -p "$records"
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
status=0
"$python" "$here/agreement.py" puzzles corpus --jobs "${JOBS:-12}" --record "$records/h200-agreement.json" || status=1
"$python" "$here/kernels.py" --jobs "${JOBS:-12}" --out "$records/h200-kernels.json" || status=1
"$python" "$here/grades.py" --jobs "${JOBS:-12}" --record "$records/h200-grades.json" || status=1
"$python" "$here/prints.py" --record "$records/h200-prints.json" || status=1
exit $status
