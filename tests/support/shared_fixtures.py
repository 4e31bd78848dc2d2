"""Fixtures that the tests of pmt and of the lab share."""

import importlib.util
import os
from pathlib import Path

import pytest
from firmware_tools import TARGET, make, need_firmware_tools, random_dataset
from networks import residual_network
from required import need

import pmt
from pmt.datasets import layouts
from pmt.firmware.export import export


@pytest.fixture(scope="session")
def shared():
    """The folder of models, data and golden outputs: ../shared, or PMT_SHARED; "none" skips."""
    if os.environ.get("PMT_SHARED") == "none":
        pytest.skip("PMT_SHARED is none")
    beside = Path(__file__).resolve().parents[3] / "shared"
    folder = Path(os.environ.get("PMT_SHARED") or beside)
    hint = "set PMT_SHARED to the one with models/, data/ and golden/"
    need(folder.is_dir(), f"no folder {folder}: {hint}")
    return folder


@pytest.fixture
def few_names(monkeypatch):
    """Two methods and two official data sets: a help's golden shows how names are listed."""
    monkeypatch.setattr("pmt.methods.METHODS", ("default", "mezo"))
    monkeypatch.setattr("pmt.datasets.layouts.OFFICIAL", layouts.OFFICIAL[:2])


@pytest.fixture
def wide_terminal(monkeypatch):
    """A terminal as wide as the one that the goldens of help were written on."""
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def one_torch_thread():
    """One thread for torch: several are slower on networks as small as those of the tests."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def mcunet_path(shared):
    return shared / "models" / "mcunet-5fps.pkl"


@pytest.fixture(scope="session")
def resnet8_path(shared):
    return shared / "models" / "resnet8_cifar10_int8.tflite"


@pytest.fixture(scope="session")
def unpack(shared):
    """The script that unpacks the shared images."""
    spec = importlib.util.spec_from_file_location("unpack", shared / "data" / "unpack.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def cifar10_dir(unpack, tmp_path_factory):
    """CIFAR-10 in its official binary layout; test_batch.bin has 1,000 of the 10,000 images."""
    folder = tmp_path_factory.mktemp("cifar10") / "cifar-10-batches-bin"
    unpack.cifar10(folder)
    return folder


@pytest.fixture(scope="session")
def firmware_objects(tmp_path_factory):
    """A built project: the objects of what every board's project is made of."""
    need_firmware_tools("make")
    folder = tmp_path_factory.mktemp("firmware_objects") / "fw"
    model = residual_network()
    options = pmt.preset("default", batch=3, queries=4)
    data = random_dataset(model, 9)
    export(model, target=TARGET, out=folder, dataset=data, options=options)
    built = make(folder)
    assert built.returncode == 0, built.stdout
    return folder
