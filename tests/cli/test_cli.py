import json
import re

import numpy as np
import pytest
from cli_files import check_golden, program, write_data, write_model

import pmt
from pmt.cli import main
from pmt.cli.program import BASIC, COMMANDS, LONG
from pmt.datasets import Dataset, load, save_npz
from pmt.datasets.layouts import OFFICIAL
from pmt.firmware.export import targets

pytestmark = pytest.mark.usefixtures("wide_terminal")


@pytest.fixture
def model(tmp_path):
    return write_model(tmp_path)


@pytest.fixture
def data(tmp_path):
    return write_data(tmp_path)


@pytest.mark.parametrize("command", ["pmt", "train", "export"])
@pytest.mark.usefixtures("few_names")
def test_help_says_units_and_defaults(command, capsys):
    assert main([*([] if command == "pmt" else [command]), "--help"]) == 0
    check_golden(f"help_{command}.txt", capsys.readouterr().out)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("few_names")
def test_every_help_is_whole_and_in_bounds(command, capsys):
    name = command.__name__.rpartition(".")[2]
    for flag in ("--help", *(["--help-all"] if name in LONG else [])):
        assert main([name, flag]) == 0
        printed = capsys.readouterr().out
        assert printed.startswith(f"usage: {command.USAGE}\n\n")
        assert " ".join(command.DESCRIPTION.split()) in " ".join(printed.split())
        assert len(printed.splitlines()) < (250 if flag == "--help-all" else 100)
        assert max(map(len, printed.splitlines())) <= 100
        assert "default: None" not in printed
        assert "==SUPPRESS==" not in printed
        # Every argument has a text, on its line or the next one.
        lines = printed.splitlines()
        for line, following in zip(lines, [*lines[1:], ""], strict=True):
            if re.match(r"  (-|[A-Z])", line):
                assert re.search(r"\S {2,}\S", line) or following.startswith(" " * 20), line


@pytest.mark.parametrize("command", COMMANDS)
def test_helps_fit_a_terminal_of_80_columns(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([command.__name__.rpartition(".")[2], "--help"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("command", LONG)
def test_the_help_of_a_long_command_is_short_and_says_how_much_more_there_is(command, capsys):
    assert main([command, "--help"]) == 0
    short = capsys.readouterr().out
    assert main([command, "--help-all"]) == 0
    whole = capsys.readouterr().out
    flag = re.compile(r"^  (?:-h, )?(--[a-z0-9-]+)", re.MULTILINE)
    shown = flag.findall(short)
    assert set(shown) <= set(BASIC)
    assert short.count("\n") < 90
    more = len(flag.findall(whole)) - len(shown)
    assert more > 25
    assert short.endswith(f"\n\n`pmt {command} --help-all` shows {more} more options.\n")
    assert "--help-all` shows" not in whole


def test_every_basic_option_is_one(capsys):
    for command in LONG:
        assert main([command, "--help-all"]) == 0
    known = capsys.readouterr().out
    assert [name for name in BASIC if f" {name}" not in known] == []


def test_help_names_every_official_data_set(capsys):
    assert main(["eval", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    *titles, last = (layout.title for layout in OFFICIAL)
    assert titles[:2] == ["Stanford Cars", "CUB-200-2011"]
    assert f"the official files of {', '.join(titles)} or {last}, one .npz file" in shown


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pmt {pmt.__version__}\n"


def test_info_is_a_table(model, capsys):
    assert main(["info", str(model), "--layers", "B2,head", "--batch", "4", "--plan"]) == 0
    check_golden("info.txt", capsys.readouterr().out)


def test_info_as_json(model, capsys):
    assert main(["info", str(model), "--json", "-"]) == 0
    printed = capsys.readouterr()
    figures = json.loads(printed.out)
    assert sorted(figures) == [
        "biases", "blocks", "classes", "image_bytes", "input_mean", "input_shape", "input_stage",
        "input_std",
        "layers", "macs", "memory", "metadata", "output_shape", "weights",
    ]  # fmt: skip
    assert figures["weights"] == 216 + 128 + 144 + 128 + 576 + 32
    assert figures["macs"] == 64 * (216 + 128 + 144 + 128) + 16 * 576 + 32
    scales = figures["layers"][2].pop("weight_scales")
    assert len(scales) == 16
    assert 0.002 <= min(scales) <= max(scales) <= 0.006
    assert figures["layers"][2] == {
        "op": 2,
        "name": "depth",
        "kind": "depthwise_conv2d",
        "output_shape": [8, 8, 16],
        "output_scale": pytest.approx(0.02),
        "output_zero_point": -128,
        "weights": 144,
        "biases": 16,
        "macs": 64 * 144,
        "dead_channels": 0,
        "estimator": "pooled_perturbation",
    }
    assert figures["memory"]["layers"] == [0, 1, 2, 3, 5, 7]
    # stem 512, expand 1024 and depth 1024 are alive at the depthwise convolution.
    assert figures["memory"]["inference_activation_bytes"] == 512 + 1024 + 1024
    assert printed.err.startswith("op  layer")


def test_eval_gives_what_python_gives(model, data, capsys):
    assert main(["eval", str(model), "--data", str(data), "--json", "-"]) == 0
    expected = pmt.load(model).evaluate(load(data, split="test"))
    assert json.loads(capsys.readouterr().out) == {
        "accuracy": expected.accuracy,
        "loss": expected.loss,
        "n": 20,
    }


def test_eval_corrupts_the_test_split_with_the_next_seed(model, data, tmp_path, capsys):
    noisy = ["--corruption", "gaussian_noise", "--severity", "3", "--seed", "6"]
    path = tmp_path / "figures.json"
    assert main(["eval", str(model), "--data", str(data), *noisy, "--json", str(path)]) == 0
    images = pmt.corruptions.corrupt(load(data, split="test"), "gaussian_noise", 3, seed=7)
    expected = pmt.load(model).evaluate(images)
    assert json.loads(path.read_text())["loss"] == expected.loss
    assert capsys.readouterr().out == (
        f"20 test images of {data}, gaussian_noise severity 3\n"
        f"accuracy {expected.accuracy:.4f}  loss {expected.loss:.4f}\n"
    )


def test_a_limit_takes_the_same_images_corrupted_as_in_the_whole_split(model, data, capsys):
    whole = pmt.corruptions.corrupt(load(data, split="train"), "shot_noise", 5, seed=0)
    noisy = ["--corruption", "shot_noise", "--split", "train", "--limit", "12", "--json", "-"]
    losses = []
    for _ in range(2):
        assert main(["eval", str(model), "--data", str(data), *noisy]) == 0
        figures = json.loads(capsys.readouterr().out)
        assert figures["n"] == 12
        losses.append(figures["loss"])
    network = pmt.load(model)
    single = [network.evaluate(whole.subset([i])).loss for i in range(60)]
    chosen = [2, 3, 11, 13, 15, 20, 21, 32, 48, 53, 55, 59]
    assert losses[0] == losses[1]
    assert losses[0] == pytest.approx(np.mean([single[i] for i in chosen]), abs=1e-9)


def test_images_of_another_size_are_resized(model, tmp_path, capsys):
    rng = np.random.default_rng(0)
    big = Dataset(
        rng.integers(0, 256, (6, 20, 12, 3)).astype(np.uint8), np.arange(6) % 4, tuple("abcd"), "x"
    )
    save_npz(big, tmp_path / "big.npz")
    assert main(["eval", str(model), "--data", str(tmp_path / "big.npz"), "--json", "-"]) == 0
    expected = pmt.load(model).evaluate(load(tmp_path / "big.npz", size=8))
    assert json.loads(capsys.readouterr().out)["loss"] == expected.loss


TRAIN = "train {model} --data {data} --out {out} "
BAD_INPUT = {
    "unknown layer": (
        "info {model} --layers B2,nose",
        "--layers='B2,nose': 'nose' is neither a block (B1, B2, B3, head, all) nor a layer; "
        "`pmt info` lists the layers",
    ),
    "unknown block": (
        TRAIN + "--block 9",
        "--layers='B9': 'B9' is neither a block (B1, B2, B3, head, all) nor a layer; "
        "`pmt info` lists the layers",
    ),
    "unknown corruption": (
        TRAIN + "--corruption rain",
        f"--corruption 'rain' is unknown; choose one of {', '.join(pmt.corruptions.names())}",
    ),
    "severity": ("eval {model} --data {data} --corruption fog --severity 6",
                 "--severity 6 must be 1..5"),
    "severity in words": (
        "eval {model} --data {data} --corruption fog --severity high",
        "argument --severity: 'high' must be a whole number, 1..5; see `pmt eval --help`",
    ),
    "block by its name": (
        TRAIN + "--block B2",
        "argument --block: 'B2' must be a number, as 2 for --layers B2; see `pmt train --help`",
    ),
    "near a corruption": (
        TRAIN + "--corruption fgo", "--corruption 'fgo' is unknown; did you mean 'fog'?"
    ),
    "near a layer": (
        TRAIN + "--layers B2,stme",
        "--layers='B2,stme': 'stme' is neither a block nor a layer; did you mean 'stem'?",
    ),
    "near a bundled model": (
        "info fashion_mnist_dscn",
        "MODEL 'fashion_mnist_dscn': there is no such file, run folder or bundled model; did you "
        "mean 'fashion_mnist_dscnn'?",
    ),
    "near the bundled data": (
        "eval {model} --data {data}/bundeld",
        "--data {data}/bundeld: no such file or folder; did you mean 'bundled'?",
    ),
    "near a method": (
        TRAIN + "--method mezzo", "--method='mezzo' is unknown; did you mean 'mezo'?"
    ),
    "near a target": (
        "export {model} --data {data} --target stm32f746g-disc --out {out}",
        "--target='stm32f746g-disc' is unknown; did you mean 'stm32f746g-disco'?",
    ),
    "an option of another method": (
        TRAIN + "--method last_layer --queries 4 --preset paper",
        "--method and --preset exclude each other: leave one out",
    ),
    "a foreign option": (
        TRAIN + "--method no_adaptation --queries 4",
        "--queries is not an option of the method no_adaptation: leave it out",
    ),
    "a budget below a step": (
        TRAIN + "--macs 10 --batch 2 --queries 2 --preparation none --layers B2",
        "--macs=10 is less than the 449856 multiply-accumulates of one step; raise it, or use a "
        "smaller batch or fewer queries",
    ),
    "severity alone": (
        "eval {model} --data {data} --severity 2", "--severity 2 needs --corruption NAME"
    ),
    "seed of a corruption alone": (
        "eval {model} --data {data} --corruption-seed 3",
        "--corruption-seed 3 needs --corruption NAME",
    ),
    "labels that the data has not": (
        "eval {model} --data bundled --coarse-labels",
        "--coarse-labels: the bundled images are not of CIFAR-100; leave it out",
    ),
    "images to measure on, and no data": (
        "quantize {model} --calibrate {data} --out {out}.pmt --eval-limit 5",
        "--eval-limit 5 needs --eval DIR",
    ),
    "no data": (
        "eval {model} --data {out}", "--data {out}: no such file or folder; check the path"
    ),
    "no lock": ("export --from {out} --out {out}", "--from {out}: No such file or directory"),
    "a log without its flag": (
        "monitor log.txt", "'log.txt' is no argument; give a log as --file, a port as --port"
    ),
    "a folder": ("monitor --file {data}", "--file {data}: is a folder; name a file"),
    "a file above": (
        "download cifar10 --root {model}",
        "{model}/cifar10: a part of the path is a file, not a folder; name another place",
    ),
    "no model": ("eval {out}.pmt --data {data}", "MODEL '{out}.pmt': there is no such file"),
    "split": ("eval {model} --data {data} --split valid",
              "--split='valid' is unknown; choose one of train, test"),
    "queries 0": (
        TRAIN + "--queries 0", "--queries=0 must be 2..4096 (leave-one-out compares two)"
    ),
    "mu 0": (TRAIN + "--mu-node 0", "--mu-node=0 must be 1..64"),
    "preset": (
        TRAIN + "--preset best",
        "--preset='best' is unknown; choose one of default, paper, released",
    ),
    "generator": (
        TRAIN + "--generator mt19937",
        "--generator='mt19937' is unknown; choose one of philox, xorshift32",
    ),
    "large batch": (
        TRAIN + "--batch 61",
        "--batch=61 is larger than the 48 training images left, 12 of 60 are held out to choose "
        "the best state; use a smaller batch",
    ),
    "used folder": (
        "train {model} --data {data} --out {data}",
        "--out='{data}' already exists and holds no run; choose another folder or empty it",
    ),
    "no folder": ("train {model} --data {data}", "--out is missing; see `pmt train --help`"),
    "resume nothing": ("train --resume {out}", "--resume '{out}' holds no run: no checkpoint.pmt"),
    "resume with options": (
        "train --resume {out} --queries 4",
        "--resume takes no --queries: the run's config.toml holds it",
    ),
    "not a number": (
        TRAIN + "--epochs many",
        "argument --epochs: 'many' must be a whole number, 1..10^6; see `pmt train --help`",
    ),
    "limit": (
        "eval {model} --data {data} --limit 0",
        "argument --limit: 0 must be 1 or more; see `pmt eval --help`",
    ),
    "required": (
        "eval {model}", "the following arguments are required: --data; see `pmt eval --help`"
    ),
    "json folder": (
        "info {model} --json {out}/x.json", "--json {out}/x.json: its folder does not exist; "
        "create it"
    ),
    "target": ("export {model} --data {data} --target toaster --out {out}",
               f"--target='toaster' is unknown; choose one of {', '.join(targets())}, or give the "
               "path of a TOML file that describes a board"),
    "no target file": (
        "export {model} --data {data} --target nofile.toml --out {out}",
        f"--target='nofile.toml': no such file; check the path, or choose one of "
        f"{', '.join(targets())}",
    ),
    "one candidate": (
        "select {model} --data {data} --blocks B1",
        "--blocks='B1': a choice needs two or more different names",
    ),
    "one candidate of the board": (
        "export {model} --data {data} --target generic --out {out} --select B1",
        "--select='B1': a choice needs two or more different names",
    ),
    "export without data": (
        "export {model} --target qemu-mps2-an500 --out {out}",
        "--data is missing: the firmware needs images; see `pmt export --help`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_is_one_line_and_exit_code_2(name, model, data, tmp_path, capsys):
    command, message = BAD_INPUT[name]
    paths = {"model": model, "data": data, "out": tmp_path / "out"}
    assert main(command.format(**paths).split()) == 2
    printed = capsys.readouterr()
    assert printed.err == f"pmt: error: {message.format(**paths)}\n"
    assert not (tmp_path / "out").exists()


def test_seed_0_is_refused_with_xorshift32(model, data, tmp_path, capsys):
    command = ["train", str(model), "--data", str(data), "--out", str(tmp_path / "run")]
    assert main([*command, "--generator", "xorshift32", "--seed", "0"]) == 2
    assert capsys.readouterr().err.startswith("pmt: error: --seed=0 must be 1..4294967295")


def test_an_unknown_command_is_named(capsys):
    assert main(["teach"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(
        "pmt: error: argument COMMAND: 'teach' is unknown; choose one of demo, info, profile, eval,"
    )
    assert error.endswith("download, doctor; see `pmt --help`\n")
    assert main(["trian"]) == 2
    assert capsys.readouterr().err == (
        "pmt: error: argument COMMAND: 'trian' is unknown; did you mean 'train'?\n"
    )


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("train --quieries 8", "--quieries is unknown; did you mean --queries?"),
        ("train m --learning_rate=1", "--learning_rate is unknown; did you mean --learning-rate?"),
        ("eval m --dat bundled", "--dat is unknown; did you mean --data?"),
        ("eval m --colour 3", "--colour is unknown; see `pmt eval --help`"),
        ("select m --colour 3", "--colour is unknown; see `pmt select --help-all`"),
        ("train m --lr 1", "--lr is unknown; did you mean --learning-rate?"),
        ("align m --images 9", "--images is unknown; see `pmt align --help`"),
        ("eval m --images=9", "--images is unknown; see `pmt eval --help`"),
        ("--verison", "--verison is unknown; did you mean --version?"),
        ("info m -x", "unrecognized arguments: -x; see `pmt info --help`"),
        ("select m --keep-best", "--keep-best is unknown; see `pmt select --help-all`"),
        ("export m --no-keep-best", "--no-keep-best is unknown; see `pmt export --help-all`"),
        ("eval m --data d more", "unrecognized arguments: more; see `pmt eval --help`"),
    ],
)
def test_an_unknown_flag_is_named_first(command, message, capsys):
    assert main(command.split()) == 2
    assert capsys.readouterr().err == f"pmt: error: {message}\n"


def test_behind_two_dashes_stand_no_flags(capsys):
    assert main(["info", "--", "--none.pmt"]) == 2
    assert capsys.readouterr().err == ("pmt: error: MODEL '--none.pmt': there is no such file\n")


def test_a_damaged_model_is_named(model, data, capsys):
    damaged = bytearray(model.read_bytes())
    damaged[200] ^= 1
    model.write_bytes(damaged)
    assert main(["eval", str(model), "--data", str(data)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"pmt: error: {model}: ")
    assert error.count("\n") == 1


def test_data_of_other_channels_or_classes_is_refused(model, tmp_path, capsys):
    pairs = Dataset(np.zeros((2, 8, 8, 2), np.uint8), np.array([0, 1]), ("a", "b"), "pairs")
    save_npz(pairs, tmp_path / "pairs.npz")
    assert main(["eval", str(model), "--data", str(tmp_path / "pairs.npz")]) == 2
    assert capsys.readouterr().err == (
        f"pmt: error: {tmp_path / 'pairs.npz'}: images have 2 channels, the model takes 3; convert "
        "them, or use another model\n"
    )
    gray = Dataset(np.zeros((2, 8, 8, 1), np.uint8), np.array([0, 1]), tuple("abcd"), "gray")
    save_npz(gray, tmp_path / "gray.npz")
    assert main(["eval", str(model), "--data", str(tmp_path / "gray.npz")]) == 0
    capsys.readouterr()
    many = Dataset(np.zeros((2, 8, 8, 3), np.uint8), np.array([0, 4]), tuple("abcde"), "many")
    save_npz(many, tmp_path / "many.npz")
    assert main(["eval", str(model), "--data", str(tmp_path / "many.npz")]) == 2
    assert capsys.readouterr().err == (
        "pmt: error: data set 'many' has label 4, the model has 4 classes (0..3); use another data "
        "set, or give the model a new last layer by --classes=5\n"
    )


def test_pmt_traceback_raises(monkeypatch, tmp_path):
    monkeypatch.setenv("PMT_TRACEBACK", "1")
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        main(["info", str(tmp_path / "none.pmt")])


def test_memory_and_full_disks_are_explained():
    from pmt.cli.program import describe

    assert describe(MemoryError(), ("model", "batch", "queries", "threads")) == (
        "not enough memory; use a smaller --batch or fewer --queries or fewer --threads"
    )
    assert describe(MemoryError(), ("model", "limit")) == (
        "not enough memory; use a --limit of images"
    )
    assert describe(MemoryError()) == "not enough memory"
    assert describe(OSError(28, "No space left on device", "/x")) == "/x: No space left on device"
    assert describe(ValueError("two\nlines")) == "two lines"


def test_a_reader_that_goes_away_gives_no_traceback(model):
    info = program("info", model, "--plan")
    assert info.stdout is not None
    assert info.stderr is not None
    info.stdout.close()
    assert info.stderr.read() == ""
    assert info.wait() == 141
    info.stderr.close()


def test_the_module_runs_as_a_program(model):
    info = program("info", model)
    out, err = info.communicate()
    assert (info.returncode, err) == (0, "")
    assert out.splitlines()[1].split()[:6] == ["0", "stem", "conv2d", "8x8x8", "0.02", "-128"]


def test_a_bundled_data_set_keeps_its_name(tmp_path):
    from pmt.protocol.data_source import DataSource

    source = DataSource("bundled", "fog", 2, 3)
    assert DataSource.from_config({**source.to_config(), "limit": 0}) == source
    assert source.description("train") == "bundled, fog severity 2"


def test_outputs_are_different_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.pmt").write_bytes(pmt.load("fashion_mnist_dscnn").image())
    before = (tmp_path / "net.pmt").read_bytes()
    assert main(["info", "net.pmt", "--json", "./net.pmt"]) == 2
    assert capsys.readouterr().err == (
        "pmt: error: --json net.pmt: would replace a file that the command reads; give another "
        "name\n"
    )
    assert (tmp_path / "net.pmt").read_bytes() == before
    both = ["--json", "x.svg", "--plot", "x.svg"]
    assert main(["profile", "net.pmt", *both]) == 2
    assert capsys.readouterr().err == (
        "pmt: error: --plot x.svg: is the file of --json too; give another name\n"
    )


@pytest.mark.parametrize("name", ["checkpoint.pmt", "config.toml", "checkpoint-3.npz"])
def test_nothing_is_written_over_the_files_of_a_run(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    for file in ("checkpoint.pmt", "config.toml", "checkpoint-3.npz"):
        (tmp_path / "run" / file).write_text("of the run")
    assert main(["info", "fashion_mnist_dscnn", "--json", f"run/{name}"]) == 2
    assert capsys.readouterr().err == (
        f"pmt: error: --json run/{name}: would replace a file of a run's folder; give another "
        "name\n"
    )
    assert (tmp_path / "run" / name).read_text() == "of the run"
    assert main(["info", "fashion_mnist_dscnn", "--json", "run/info.json"]) == 0
