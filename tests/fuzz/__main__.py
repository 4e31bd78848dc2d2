"""Fuzz one reader with atheris (``pip install atheris``), guided by the coverage of its code.

    PYTHONPATH=tests:tests/support python -m fuzz tflite --minutes 10

A finding is written to ``tests/fuzz/findings/TARGET-<hash>``, which `tests/project/test_fuzz.py`
reads from then on. It counts as one when a reader raises anything but a ValueError that names the
file, takes more than 10 seconds, or more than 512 MB above what the process starts with.
"""

import argparse
import resource
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["pmt", "tflite", "onnx"]):
    from fuzz.targets import TARGETS, check

FINDINGS = Path(__file__).parent / "findings"
MEMORY_BYTES = 512 * 2**20
SECONDS_AN_INPUT = 10


def main() -> None:
    """Run until the time is over or something is found."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--minutes", type=float, default=10.0)
    options = parser.parse_args()
    target = TARGETS[options.target]
    FINDINGS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_memory_folder()) as scratch:
        corpus, folder = Path(scratch) / "corpus", Path(scratch) / "file"
        corpus.mkdir()
        for number, seed in enumerate(target.seeds()):
            assert check(target, folder, seed), f"seed {number} of {options.target} is refused"
            (corpus / f"seed{number}").write_bytes(seed)
        limit = _address_space() + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        atheris.Setup(
            [
                sys.argv[0],
                f"-max_total_time={round(60 * options.minutes)}",
                f"-timeout={SECONDS_AN_INPUT}",
                f"-artifact_prefix={FINDINGS}/{options.target}-",
                "-max_len=65536",
                "-print_final_stats=1",
                str(corpus),
            ],
            lambda data: check(target, folder, data),
        )
        atheris.Fuzz()


def _memory_folder() -> str | None:
    shared_memory = Path("/dev/shm")
    return str(shared_memory) if shared_memory.is_dir() else None


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    main()
