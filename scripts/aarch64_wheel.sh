#!/bin/bash
# Makes a wheel for 64-bit Arm Linux on an x86-64 Debian, and tries it: scripts/aarch64_wheel.sh SOURCE DIST
#
# Debian's own Python for Arm, unpacked in build/wheel/arm, runs under qemu-user. What it starts, CMake and the cross
# compiler, are this machine's programs. The wheel's library is then trained with under emulation, and the model must
# have the bytes of the one that this machine's pmt trains.
set -euo pipefail
source=$(realpath "$1")
dist=$(realpath -m "$2")
cd "$(dirname "$0")/.."

work=$PWD/build/wheel/arm
root=$work/root
site=$work/site
venv=$PWD/.venv/bin
packages=$("$venv/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
python=python$("$venv/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
libraries=$root/usr/lib/aarch64-linux-gnu:$root/lib/aarch64-linux-gnu

arm_apt() {
  apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$work/apt" \
    -o Dir::State::status="$work/apt/status" -o Dir::Cache="$work/apt" -o Debug::NoLocking=1 "$@"
}

arm_python() {
  qemu-aarch64-static -L "$root" -0 "$root/usr/bin/python" -E LD_LIBRARY_PATH="$libraries" "$root/usr/bin/$python" "$@"
}

unpack_python() {
  mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial" "$root"
  touch "$work/apt/status"
  arm_apt update
  arm_apt install -y --no-install-recommends --download-only "$python" "lib$python-dev" libgomp1 libstdc++6
  for package in "$work"/apt/archives/*.deb; do dpkg -x "$package" "$root"; done
  # CMake starts the Python that builds.
  cat > "$root/usr/bin/python" << END
#!/bin/sh
exec qemu-aarch64-static -L $root -0 $root/usr/bin/python $root/usr/bin/$python "\$@"
END
  chmod +x "$root/usr/bin/python"
}

build_wheel() {
  (
    cd "$source"
    export CXXFLAGS="-idirafter $root/usr/include" PYTHONPATH=$packages PATH=$venv:$PATH
    export CMAKE_ARGS="-DCMAKE_TOOLCHAIN_FILE=$source/cmake/aarch64-linux.cmake"
    arm_python -m build --wheel --no-isolation --outdir "$work/wheel" .
    arm_python -m auditwheel repair --wheel-dir "$dist" "$work"/wheel/*.whl
  )
}

unpack_wheels() {
  mkdir -p "$site"
  "$venv/python" -m pip download --quiet -c constraints.txt --only-binary :all: --dest "$work/needs" \
    --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux2014_aarch64 \
    numpy filelock
  for wheel in "$dist"/*_aarch64.whl "$work"/needs/*.whl; do "$venv/python" -m zipfile -e "$wheel" "$site"; done
}

train() {
  "$@" -m pmt train fashion_mnist_dscnn --data bundled --corruption fog --severity 5 --layers B2,head --epochs 1 \
    --limit 60 --valid-limit 20 --queries 2 --threads 1 --out "$out"
}

compare_bytes() {
  export OMP_NUM_THREADS=1
  out=$work/here train "$venv/python"
  PYTHONPATH=$site out=$work/emulated train arm_python
  cmp "$work/here/best.pmt" "$work/emulated/best.pmt"
  echo "The model trained under emulation has the bytes of the one trained here."
}

rm -rf "$work" "$dist"/*_aarch64.whl
unpack_python
build_wheel
unpack_wheels
compare_bytes
