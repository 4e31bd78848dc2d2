"""Sources of the C++ core and of the firmware: installed beside the package, or in the tree."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def core_folder() -> Path:
    """Return the folder of the C++ core."""
    return _find("core", "cpp/core", "train/trainer.hpp")


def firmware_folder() -> Path:
    """Return the folder of boards, common code and templates."""
    return _find("firmware_export", "firmware_export", "boards")


def get_include() -> str:
    """Return the folder from which the headers of the C++ core are included.

    Returns
    -------
    str
        ``#include "core/train/trainer.hpp"`` is found from there.

    Raises
    ------
    FileNotFoundError
        If the installation is damaged.
    """
    return str(core_folder().parent)


def get_cmake_dir() -> str:
    """Return the folder of the CMake package, for ``-Dpmt_DIR=`` or ``CMAKE_PREFIX_PATH``.

    Returns
    -------
    str
        With it ``find_package(pmt)`` gives the target ``pmt::core``, which is compiled with the
        project that links it.

    Raises
    ------
    FileNotFoundError
        If the installation is damaged.
    """
    return str(_find("cmake", "cmake", "pmtConfig.cmake"))


def _find(installed: str, in_tree: str, marker: str) -> Path:
    candidates = (_PACKAGE / "_native" / installed, _PACKAGE.parents[1] / in_tree)
    for folder in candidates:
        if (folder / marker).exists():
            return folder
    raise FileNotFoundError(
        f"the C++ sources are missing: neither {candidates[0]} nor {candidates[1]} has {marker}; "
        "install poor-mans-training again"
    )
