"""The log of pmt: records where a user looks for them, and nothing configured."""

import logging
import subprocess
import sys

import pytest
from networks import residual_network
from toy_trainer import data

import pmt
from pmt import _core


def test_import_configures_no_logging():
    """The only handler is the one that stops Python from printing records nobody asked for."""
    program = (
        "import logging, pmt; pmt.load; log = logging.getLogger('pmt.model.loading');"
        "print(log.level, [type(h).__name__ for h in log.handlers], logging.root.handlers);"
        "log.warning('unseen')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0 ['NullHandler'] []\n", "")


def test_a_run_says_that_it_begins_and_that_it_was_finished(tmp_path, caplog):
    caplog.set_level(logging.INFO, "pmt")
    out = tmp_path / "run"
    trainer = pmt.ZOTrainer(
        epochs=1, batch=4, queries=2, preparation="none", keep_best=False, threads=1
    )
    for _ in range(2):
        trainer.fit(residual_network(), data(4), out=out)
    pmt.load(out)
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("pmt.train.run.loop", f"{out}: 1 steps on 4 images, kernels {_core.kernels()}, threads 1"),
        ("pmt.train.run.loop", f"{out} was finished before: its result is returned"),
        ("pmt.model.loading", f"{out / 'checkpoint.pmt'} is loaded"),
    ]
    assert {record.levelname for record in caplog.records} == {"INFO"}


def test_a_run_says_that_it_is_resumed(tmp_path, caplog):
    out = tmp_path / "run"
    trainer = pmt.ZOTrainer(
        epochs=3, batch=4, queries=2, preparation="none", keep_best=False, threads=1
    )

    def interrupt(step: int, record: object) -> None:
        if step == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer.fit(residual_network(), data(4), out=out, progress=interrupt)
    caplog.set_level(logging.INFO, "pmt")
    trainer.fit(residual_network(), data(4), out=out)
    assert caplog.messages[1] == f"{out} is resumed after step 1"
