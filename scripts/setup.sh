#!/bin/bash
# Sets this machine up: scripts/setup.sh demo|docs|test
#
# Installs what is missing with apt where it may (as root, or with sudo that asks nothing), makes a
# virtual environment in .venv, and installs the package there, not editable: what runs is what a
# user gets. A second call is quick.
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:-}
case $purpose in
  demo) extras=plot ;;
  docs) extras=docs ;;
  test) extras=plot,data,tflite,tflm,onnx,notebook,docs,test,dev lab=plot,bench,test ;;
  *)
    echo "usage: scripts/setup.sh demo|docs|test" >&2
    exit 2
    ;;
esac
python=${PYTHON:-python3}
# With these pip would refuse the sources of pmt, which have no hash.
unset PIP_CONSTRAINT PIP_REQUIRE_HASHES

has() { command -v "$1" > /dev/null; }
has_header() { echo "#include <$1>" | "${2:-g++}" -std=c++17 -x c++ -fsyntax-only - 2> /dev/null; }
python_says() { "$python" -c "$1" 2> /dev/null; }

missing=()
need() {
  local package=$1
  shift
  "$@" || missing+=("$package")
}

find_missing() {
  missing=()
  need g++ has g++
  need python3 has "$python"
  need python3-venv python_says 'import ensurepip, venv'
  need python3-dev python_says \
    'import os, sysconfig; assert os.path.exists(sysconfig.get_path("include") + "/Python.h")'
  if [ "$purpose" = test ]; then
    need libxtensor-dev has_header xtensor/xarray.hpp
    need doctest-dev has_header doctest/doctest.h
    need ccache has ccache
    need clang-14 has clang++-14
    need clang-format-14 has clang-format-14
    need clang-tidy-14 has clang-tidy-14
    need gcc-arm-none-eabi has arm-none-eabi-g++
    need libnewlib-arm-none-eabi has_header stdint.h arm-none-eabi-g++
    need libstdc++-arm-none-eabi-newlib has_header cstdint arm-none-eabi-g++
    need qemu-system-arm has qemu-system-arm
    need gcc-riscv64-unknown-elf has riscv64-unknown-elf-g++
    need libdnnl-dev has_header oneapi/dnnl/dnnl.hpp
    need libsimde-dev has_header simde/x86/avx512.h
    need g++-aarch64-linux-gnu has aarch64-linux-gnu-g++
    need qemu-user-static has qemu-aarch64-static
  fi
}

install_missing() {
  find_missing
  [ ${#missing[@]} -eq 0 ] && return
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! sudo -n true 2> /dev/null; then
      echo "Some packages are missing. Run this line, then call make again:" >&2
      echo "  sudo apt-get install -y ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo -n)
  fi
  if ! has apt-get; then
    echo "Missing, by their Debian names: ${missing[*]}. Install them, then call make again." >&2
    exit 1
  fi
  echo "  apt-get install ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
}

# Shows of a long command what it is at; all that it says is in the log, whose end an error shows.
show_progress() {
  local log=$1
  shift
  "$@" > "$log" 2>&1 &
  local command=$! shown='' line
  trap 'kill '"$command"' 2> /dev/null || true' EXIT  # Ctrl-C does not reach what runs in the background
  while kill -0 "$command" 2> /dev/null; do
    sleep 1
    line=$(grep -aoE '(Downloading [^ ]+ \([^)]+\)|^ *\[[0-9]+/[0-9]+\])' "$log" | tail -n 1) || true
    [ "$line" = "$shown" ] && continue
    shown=$line
    if [ -t 1 ]; then printf '\r\033[K  %s' "$line"; else echo "  $line"; fi
  done
  [ -t 1 ] && printf '\r\033[K'
  wait "$command" && trap - EXIT && return
  tail -n 40 "$log" >&2
  echo "The whole log is $log." >&2
  return 1
}

make_environment() {
  if ! python_says 'import sys; assert sys.version_info >= (3, 10)'; then
    echo "$python is older than Python 3.10. Name a newer one: make PYTHON=/path/to/python3" >&2
    exit 1
  fi
  # A folder without a working pip is left over from a set-up that was interrupted.
  .venv/bin/python -c 'import pip._internal.commands.install' 2> /dev/null || "$python" -m venv --clear .venv
  mkdir -p build
  local pip=(.venv/bin/python -m pip install --disable-pip-version-check)
  # An older pip takes no hashes from constraints.
  "${pip[@]}" -qq --require-hashes --no-deps -r <(grep '^pip==' constraints.txt)
  local pinned=("${pip[@]}" -c constraints.txt)
  echo "2/3 Compiling pmt (minutes the first time)"
  show_progress build/setup_tools.log "${pinned[@]}" scikit-build-core pybind11 cmake ninja
  PATH=$PWD/.venv/bin:$PATH \
    show_progress build/setup_pmt.log "${pip[@]}" --verbose --no-build-isolation --no-deps . ${lab:+./lab}
  # pip, which refuses files without a hash and so a folder, finds pmt installed: needs are left.
  echo "3/3 Installing ${extras//,/, } into .venv"
  show_progress build/setup_needs.log "${pinned[@]}" "poor-mans-training[$extras]" \
    ${lab:+"poor-mans-training-lab[$lab]"}
}

echo "1/3 Looking for Debian packages that are missing"
install_missing
make_environment
