import sys

import pytest

pytest_plugins = ["workers", "shared_fixtures"]


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
