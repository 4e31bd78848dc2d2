"""Checks that every method passes by being registered, its own trainer or another's."""

import pytest
from toy_trainer import Stop, stop_at

import pmt
from pmt import methods
from pmt.baselines.backprop.scheme import UpdateScheme
from pmt.cli import main
from pmt.train.prepare.preparation import Preparation

STEPS, BATCH = 2, 4
DATA = pmt.datasets.bundled("train").take(STEPS * BATCH)
WATCHED = pmt.datasets.bundled("test").take(8)

every_method = pytest.mark.parametrize("name", methods.METHODS)


def small_model() -> pmt.Model:
    return pmt.load("fashion_mnist_dscnn")


def trainer_of(name: str, **changes):
    """Return a method's trainer for two steps of few images and queries."""
    method, model = methods.METHODS[name], small_model()
    if method.kind.trainer.startswith("pmt.baselines."):
        pytest.importorskip("torch")
    few = {"epochs": 1, "batch": BATCH, "queries": 2, "align_images": BATCH}
    if not method.own_layers:
        few["layers"] = "head" if "deepzero" in name else "B2,head"  # every weight is a query
    if name == "mcutrain":  # the published schemes are for MCUNet
        few["scheme"] = UpdateScheme.whole(model.select_layers("B3"), model).text(model)
    known = methods.options_of(name).__dataclass_fields__
    own = set(method.options) - {"batch"}
    few = {key: value for key, value in few.items() if key in known and key not in own}
    return methods.trainer(name, threads=1, **few, **changes)


def steps_of(name: str) -> int:
    return 0 if name in ("no_adaptation", "preparation_only") else STEPS


def without_times(folder: pmt.RunFolder) -> list[dict]:
    return [{k: v for k, v in r.items() if k != "seconds"} for r in folder.read_metrics()]


@every_method
def test_it_takes_its_steps_and_reports_what_they_cost(name):
    model, trainer = small_model(), trainer_of(name)
    before, cost = model.image(), trainer.cost(model)
    result = trainer.fit(model, DATA, progress=False)
    last = result.epochs[-1]
    prepared = Preparation(trainer.options).cost(model, len(DATA))
    steps = steps_of(name)
    assert (model.image() == before) == (steps == 0 and prepared.macs == 0)
    assert (cost.macs > 0) == (steps > 0)
    assert 0 <= last["forwards"] <= prepared.forwards + steps * cost.forwards
    choice = sum(phase.get("head_choice_macs", 0) for phase in result.phases)
    most = 1.2 * prepared.macs + choice + steps * cost.macs
    assert prepared.macs + choice <= last["macs"] <= most


@every_method
def test_the_same_seed_gives_the_same_bytes_and_an_interrupted_run_goes_on_to_them(name, tmp_path):
    whole, begun = pmt.RunFolder(tmp_path / "whole"), pmt.RunFolder(tmp_path / "begun")
    first, second = small_model(), small_model()
    trainer_of(name).fit(first, DATA, valid=WATCHED, out=whole, progress=False)
    if steps_of(name):
        with pytest.raises(Stop):
            trainer_of(name).fit(second, DATA, valid=WATCHED, out=begun, progress=stop_at(1))
        assert not begun.done
        second, step = begun.load_checkpoint()
        assert step == 1
    else:
        trainer_of(name).fit(second, DATA, valid=WATCHED, out=begun, progress=False)
    again = methods.resumed_trainer(begun, threads=1)
    again.fit(second, DATA, valid=WATCHED, out=begun, progress=False)
    assert begun.checkpoint.read_bytes() == whole.checkpoint.read_bytes()
    assert without_times(begun) == without_times(whole)
    for state in whole.path.glob("*.npz"):
        assert (begun.path / state.name).read_bytes() == state.read_bytes()


@every_method
def test_its_run_folder_names_its_kind_and_holds_its_options(name, tmp_path):
    trainer, folder = trainer_of(name, seed=7), pmt.RunFolder(tmp_path / "run")
    trainer.fit(small_model(), DATA, out=folder, progress=False)
    kind = methods.METHODS[name].kind
    assert folder.trainer() == trainer.name == kind.name
    options, _ = folder.read_config()
    assert type(options) is type(trainer.options) is kind.options_class()
    made_by_the_run = {"chosen": ""} if hasattr(options, "chosen") else {}
    assert options.replace(**made_by_the_run) == trainer.options


@every_method
def test_an_unknown_option_is_refused_by_its_name(name):
    with pytest.raises(
        ValueError, match="option 'nonsense' is unknown; choose one of layers, epochs"
    ):
        methods.trainer(name, nonsense=1)


def test_the_help_of_the_command_line_names_them_all(capsys):
    assert main(["train", "--help"]) == 0
    words = capsys.readouterr().out.replace(",", " ").split()
    assert set(methods.METHODS) <= set(words)
