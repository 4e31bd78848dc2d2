"""Requirements of a test: on CI a missing one fails the test, elsewhere it skips it."""

import os
import shutil

import pytest


def need(found: bool, message: str) -> None:
    """Skip unless `found`; on CI, where everything must be, fail."""
    if found:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def need_tools(*tools: str, packages: str) -> None:
    """Need programs on the PATH, which Debian's `packages` hold."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    need(not missing, f"{', '.join(missing)} not found: apt-get install {packages}")
