#!/bin/bash
# Goes the way of someone new, from installing the wheel to a board that learns, in an empty folder with a
# fresh environment, and prints what they see as a page: scripts/empty_folder_to_board.sh > docs/tutorials/empty_folder_to_board.md
#
# The wheel is built from this tree unless WHEEL names one. COMPILERS names a folder of compilers to take, as
# /usr/lib/ccache. Needs arm-none-eabi-g++, qemu-system-arm, make.
set -euo pipefail
tree=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset PYTHONPATH MAKEFLAGS MAKELEVEL
# Nothing of an environment that is active: someone new has a system's Python.
PATH=${COMPILERS:+$COMPILERS:}$(python3 -c 'import sys; print(sys.base_prefix)')/bin:/usr/local/bin:/usr/bin:/bin

if [ -n "${WHEEL:-}" ]; then
  cp "$WHEEL" .
else
  python3 -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir . "$tree" >&2
fi

# say TEXT: a paragraph. see COMMAND ...: what is typed, and what is seen; see! where it is to fail.
say() { printf '\n%s\n' "$1"; }
see() {
  printf '\n```\n'
  for command in "$@"; do
    printf '$ %s\n' "$command"
    eval "$command" 2>&1
  done
  printf '```\n'
}
see!() {
  printf '\n```\n$ %s\n' "$1"
  if eval "$1" 2>&1; then
    echo "this should have failed: $1" >&2
    exit 1
  fi
  printf '```\n'
}

cat << 'PAGE'
# From an empty folder to a board

For firmware engineers who want to see every step before they start.

`scripts/empty_folder_to_board.sh` typed these commands, and this is what they printed; milliseconds
differ from run to run, sizes from compiler to compiler. The machine has `python3`, `make`, `arm-none-eabi-g++` and
`qemu-system-arm` (Debian: `apt-get install python3-venv make gcc-arm-none-eabi qemu-system-arm`).

## Install

`pip install .` in a clone also works; here a wheel was built before, by `pip wheel --no-deps .`.
PAGE
see 'python3 -m venv env' \
  '. env/bin/activate' \
  'pip install --quiet --disable-pip-version-check poor_mans_training-*.whl' \
  'pip list --disable-pip-version-check'

say '## A network, and images that it has not seen'
say 'A small Fashion-MNIST network and 2,000 images are part of the package. Noise lowers its accuracy:'
see 'pmt eval fashion_mnist_dscnn --data bundled' \
  'pmt eval fashion_mnist_dscnn --data bundled --corruption impulse_noise --severity 5'

say '## Export'
say 'One command, for the emulated board with the memory of a real one:'
see 'pmt export fashion_mnist_dscnn --data bundled --corruption impulse_noise --severity 5 \
      --target qemu-mps2-an500 --as stm32f746g-disco --layers B4,head \
      --steps 8 --batch 32 --queries 8 --out fw' 'ls fw'

say '## Build'
say 'The linker knows the memory of the board: a program that does not fit does not link.'
see 'cd fw' 'make -j2 | tail -n 4' 'make size'

say '## Train on the board'
say 'It reads `card.img`, trains, and compares with what the host computed:'
see 'make qemu'
say 'After a reset it continues from the newest checkpoint of the card; here nothing is left to do:'
see 'make resume | tail -n 1'

say '## What it has learned'
say 'The card holds the trained network:'
see 'pmt eval build/card.img --data bundled --corruption impulse_noise --severity 5' \
  'pmt convert build/card.img ../trained.pmt' \
  'cd ..'

say '## On a real board'
say 'The same with the board as target; `dd if=board/card.img of=/dev/sdX` writes the SD card.'
see 'pmt export fashion_mnist_dscnn --data bundled --corruption impulse_noise --severity 5 \
      --target stm32f746g-disco --layers B4,head --steps 100 --batch 32 --out board \
      | tail -n 3 | tr ";" "\n"' \
  'cd board' 'make -j2 | tail -n 4'
say 'Errors name what is missing. Here there is neither a flasher nor a board:'
see! 'make flash'
see! 'make monitor'

say '## The same folder again'
say '`pmt.lock` holds arguments, versions and hashes:'
see 'cd ..' 'pmt export --from fw/pmt.lock --out again | tail -n 1' \
  'diff -r --exclude=build fw again && echo equal'
