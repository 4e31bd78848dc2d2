#!/bin/bash
# Fuzzes every reader of files for some minutes each: scripts/fuzz.sh [MINUTES [TARGET...]]
#
# The reader of .pmt images in C++ under sanitizers (libFuzzer), the others in Python (atheris).
# Ends with an error at the first finding, which stays in tests/fuzz/findings.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-10}
shift || true
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  mapfile -t targets < <(PYTHONPATH=tests:tests/support .venv/bin/python -c \
    'from fuzz.targets import TARGETS; print("image", *TARGETS, sep="\n")')
fi

fuzz_image() {
  cmake --preset fuzz --log-level=WARNING
  cmake --build --preset fuzz
  local corpus=build/fuzz/corpus
  mkdir -p "$corpus" tests/fuzz/findings
  build/fuzz/cpp/fuzz/pmt_fuzz_seeds "$corpus"
  build/fuzz/cpp/fuzz/pmt_fuzz_image -max_total_time="$((minutes * 60))" -timeout=10 \
    -artifact_prefix=tests/fuzz/findings/image- "$corpus"
}

for target in "${targets[@]}"; do
  echo "Fuzzing $target for $minutes minutes"
  if [ "$target" = image ]; then
    fuzz_image
  else
    PYTHONPATH=tests:tests/support .venv/bin/python -W ignore -m fuzz "$target" --minutes "$minutes"
  fi
done
