import pytest
from frost_overlays import write_overlays

import pmt


@pytest.fixture(scope="module")
def frost_in_the_data_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_overlays(folder / "frost")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PMT_DATA", str(folder))
        yield


@pytest.fixture(scope="module")
def photographs(cifar10_dir):
    return pmt.datasets.load(cifar10_dir, split="test").images[:150]
