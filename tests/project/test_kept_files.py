"""Files of released versions, which every later one reads: tests/kept/VERSION."""

import shutil
import zlib
from pathlib import Path

import numpy as np
from kept.make_files import images, network, trainer

import pmt
from pmt.baselines.backprop.scheme import LayerUpdate, UpdateScheme
from pmt.datasets import load
from pmt.datasets.array_files import map_npy
from pmt.datasets.corrupted_arrays import read_manifest
from pmt.firmware.export.folder import read_lock
from pmt.model.card import read_card
from pmt.train.prepare.clean_statistics import stored_statistics

KEPT = Path(__file__).parents[1] / "kept"
FOLDER = KEPT / "0.1.0"


def checksum(model: pmt.Model) -> str:
    """CRC-32 of the logits of four images, which are exact."""
    return f"{zlib.crc32(model.logits(images(4).images).astype('<f4').tobytes()):08x}"


def test_a_model_and_its_statistics():
    model = pmt.load(FOLDER / "model.pmt")
    assert [layer.name for layer in model.layers] == ["conv", "head"]
    assert model.blocks == {"B1": [0], "head": [1], "all": [0, 1]}
    assert checksum(model) == "b41ba690"
    found = stored_statistics(model)
    assert found is not None
    assert (found.images, found.windows["conv"].means.tolist()) == (8, [6.34375])
    expected = [[-0.00227954, 0.01517474], [0.1346617, 0.05123154]]
    assert np.allclose(found.channels["conv"], expected, rtol=1e-6)


def test_a_data_set():
    data = load(FOLDER / "data.npz")
    assert (data.class_names, data.labels.tolist()) == (("ant", "bee"), [0, 1, 1, 1])
    assert zlib.crc32(data.images.tobytes()) == 507078961


def test_a_run_goes_on_to_its_end(tmp_path):
    run = shutil.copytree(FOLDER / "run", tmp_path / "run")
    assert pmt.RunFolder(run).load_checkpoint()[1] == 2
    data, held_out = images(8), images(4, 9)
    ended = trainer().fit(network(), data, held_out=held_out, out=run, progress=False)
    steps = [r["step"] for r in pmt.RunFolder(run).read_metrics() if r["kind"] == "step"]
    assert steps == list(range(8))
    uncut = trainer().fit(network(), data, held_out=held_out, progress=False)
    assert ended.model.image() == uncut.model.image()
    assert checksum(pmt.load(run / "checkpoint.pmt")) == "c43dba36"


def test_a_card():
    card = read_card(FOLDER / "card.img")
    assert (card.steps, card.samples, card.checkpoints, card.damage) == (1, 1, (), ())
    assert checksum(card.start) == "7ee43e3b"


def test_the_states_of_a_learner(tmp_path):
    states = shutil.copy(FOLDER / "states.bin", tmp_path)
    learner = pmt.Learner(pmt.load(FOLDER / "model.pmt"), samples=60, storage=states)
    assert (learner.in_force, learner.on_trial) == ("head_alone", False)
    assert learner.checksum == 1088904417
    assert checksum(learner.model()) == "884c349b"


def test_the_lock_of_an_export():
    lock = read_lock(FOLDER / "pmt.lock")
    assert lock.pmt == "0.1.0"
    assert lock.arguments is not None
    assert [lock.arguments[name] for name in ("target", "layers", "steps", "batch")] == [
        "qemu-mps2-an500", "head", 1, 1,
    ]  # fmt: skip
    assert lock.inputs.keys() == {"model", "optimizer_state", "data", "training"}


def test_a_scheme_of_layers():
    scheme = UpdateScheme.load(FOLDER / "scheme.json", pmt.load(FOLDER / "model.pmt"))
    assert scheme.layers == (LayerUpdate(0, 1, True, (0,)),)


def test_corrupted_arrays():
    manifest = read_manifest(FOLDER / "arrays")
    assert manifest is not None
    assert (manifest.data, manifest.images, manifest.shape) == ("kept", 1, (8, 8, 3))
    array = map_npy(FOLDER / "arrays" / "contrast.npy", "")
    assert array.shape == (5, 8, 8, 3)
    assert zlib.crc32(array.tobytes()) == 3344478866
