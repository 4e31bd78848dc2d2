"""Arguments that commands share, and the typed values that they stand for."""

import argparse
import dataclasses
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

import pmt
from pmt import corruptions, methods
from pmt._core import MOST_CHANNELS
from pmt._util.checks import checked_candidates, listed_names
from pmt._util.text import did_you_mean, split_names
from pmt.cli.typed_names import flag
from pmt.corruptions import CONSTANTS
from pmt.corruptions.catalog import Constants
from pmt.datasets.arrays import checked_class_names
from pmt.datasets.cifar import Labels
from pmt.datasets.layouts import official_titles
from pmt.errors import OptionError
from pmt.model import Model
from pmt.model.loading import BUNDLED_MODELS
from pmt.protocol import DataSource, SplitChoice
from pmt.protocol.data_source import data_path
from pmt.protocol.splitting import HELD_OUT, IMAGES
from pmt.train.option_fields import Option, declared_options, warn_without_effect
from pmt.train.options import PRESETS, Preset, TrainingOptions, preset
from pmt.train.prepare.clean_statistics import DEFAULT_IMAGES
from pmt.train.trainer import Trainer

Result = TypeVar("Result")


def add_options(
    group: argparse._ActionsContainer,
    options: Iterable[Option],
    notes: Callable[[Option], str] = lambda option: "",
) -> None:
    """Add an argument for each option, with a note after its default; unset ones are None."""
    for option in options:
        reads = converter(type(option.default), option.values.shown(option.metavar))
        how: dict[str, Any] = {"metavar": option.metavar, "type": reads}
        if isinstance(option.default, bool):
            how = {"action": argparse.BooleanOptionalAction}
        text = option_help(option, notes(option))
        group.add_argument(flag(option.name), dest=option.name, help=text, **how)


def option_help(option: Option, note: str = "") -> str:
    """Return the help of an option: its effect, its values and its default."""
    notes = [option.values.shown(option.metavar), f"default: {shown(option.default)}", note]
    return f"{option.described(flag)} ({'; '.join(filter(None, notes))})"


def shown(value: Any) -> str:
    """Return a value as help texts show it."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def converter(kind: type, rule: str = "") -> Callable[[str], Any]:
    """Return the function that reads a value of some type from an argument.

    `rule` says which values there are, for the error about text that is no number. Whether a number
    is one of them is checked by the function that takes it.
    """

    def convert(text: str) -> Any:
        try:
            if kind is int and "e" in text:  # 2e12, as one writes a budget
                return _whole(float(text))
            return kind(text)
        except ValueError:
            wanted = "a whole number" if kind is int else "a number"
            wanted = rule if rule.startswith("a ") else ", ".join(filter(None, (wanted, rule)))
            raise argparse.ArgumentTypeError(f"{text!r} must be {wanted}") from None

    return convert


def _whole(value: float) -> int:
    if not value.is_integer():
        raise ValueError
    return int(value)


def call(function: Callable[..., Result], arguments: argparse.Namespace, /, **given: Any) -> Result:
    """Call a function with the given values, and its other parameters from their arguments."""
    names = inspect.signature(function).parameters
    named = {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}
    return function(**{**named, **given})


def candidates(argument: str, text: str) -> tuple[str, ...]:
    """Return the blocks or layers of an argument that lists candidates."""
    return checked_candidates(listed_names(argument, text), argument)


def integer(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return an argument type: whole numbers from ``low`` to ``high`` (or without end)."""
    rule = f"{low} or more" if high is None else f"{low}..{high}"

    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} must be a whole number, {rule}") from None
        if value < low or (high is not None and value > high):
            raise argparse.ArgumentTypeError(f"{text} must be {rule}")
        return value

    return convert


def add_integer(
    parser: argparse._ActionsContainer,
    name: str,
    text: str,
    *,
    default: int | None = None,
    otherwise: str = "",
    within: tuple[int, int | None] = (1, None),
) -> None:
    """Add a whole number, as ``--limit N``; its help ends with `otherwise`, or the default."""
    name, metavar = name.split()
    text += f" (default: {otherwise or default})"
    kind = integer(*within)
    parser.add_argument(name, metavar=metavar, type=kind, default=default, help=text)


def add_positive(
    parser: argparse._ActionsContainer, name: str, text: str, *, default: float | None = None
) -> None:
    """Add a finite number above 0, as ``--clock MHZ``; the function that takes it checks that."""
    name, metavar = name.split()
    kind = converter(float, "a finite number above 0")
    parser.add_argument(name, metavar=metavar, type=kind, default=default, help=text)


def add_model(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add the model and the options of its importer."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        nargs=None if required else "?",
        help=".pmt, .tflite (full-integer), .onnx (int8, QDQ) or .pkl (tiny-training) file, run "
        f"folder, or the name of a bundled model: {', '.join(BUNDLED_MODELS)}",
    )
    add_integer(
        parser,
        "--classes N",
        "replace the last layer with a new one of N classes, or 1 output, to be trained",
        otherwise="keep it",
        within=(1, MOST_CHANNELS),
    )
    group = parser.add_argument_group("import of a .pkl")
    add_integer(
        group,
        "--resolution N",
        "height and width of the input in pixels",
        otherwise="128",
        within=(32, 512),
    )
    group = parser.add_argument_group("import of a .tflite or .onnx")
    add_pixel_formula(group, "read from the range of the file's input")


def add_pixel_formula(group: argparse._ActionsContainer, otherwise: str) -> None:
    """Add mean and standard deviation of the pixels that a network reads."""
    for name, what in (("mean", "mean"), ("std", "standard deviation")):
        group.add_argument(
            f"--input-{name}",
            metavar="V[,V,V]",
            type=_numbers,
            help=f"{what} of the pixels (0..255), per channel: the network reads "
            f"(pixel - mean) / std (default: {otherwise})",
        )


def _numbers(text: str) -> float | tuple[float, ...]:
    try:
        values = tuple(float(part) for part in text.split(","))
        return values if len(values) > 1 else values[0]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be one number, or one for each channel, separated by commas"
        ) from None


def add_model_out(parser: argparse.ArgumentParser) -> None:
    """Add the model to write; :func:`pmt.cli.output.checked_model_out` checks it."""
    parser.add_argument("--out", metavar="PATH", required=True, help=".pmt file to write")
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace an existing PATH; not needed if PATH is the input itself",
    )


def importer_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of :func:`pmt.load` that the command line sets."""
    names = ("classes", "resolution", "input_mean", "input_std")
    options = {name: getattr(arguments, name) for name in names}
    return {name: value for name, value in options.items() if value is not None}


def load_model(arguments: argparse.Namespace) -> Model:
    """Load the model that the command line names."""
    return pmt.load(arguments.model, **importer_options(arguments))


def data_help() -> str:
    """Return the help of an argument that takes a data set."""
    return (
        "folder of CIFAR-10 or CIFAR-100 (python or binary), of MNIST-like idx files, of train.npz "
        "and test.npz, of images (train/CLASS/*.png), the official files of "
        f"{official_titles()}, one .npz file, the name of a data set fetched by `pmt download`, or "
        "the word 'bundled'"
    )


def add_data(
    parser: argparse.ArgumentParser,
    *,
    required: bool,
    seed_names: Sequence[str] = ("--corruption-seed",),
) -> None:
    """Add the data set and its corruption."""
    group = parser.add_argument_group("data")
    group.add_argument(
        "--data",
        metavar="DIR",
        required=required,
        help=f"{data_help()}. Images are resized to the model's input",
    )
    add_coarse_labels(group)
    group.add_argument(
        "--class-names",
        metavar="A,B,..",
        help="names of the data's classes, in the order of its labels; a folder's classes are "
        "matched with the model's by their names without it",
    )
    group.add_argument(
        "--groups",
        metavar="NAME",
        help="what says which images are near copies, such as frames of a video, of which one "
        "side of the hold-out has all: the name of an array of the .npz file (default: groups, "
        "where it is there), or the word 'folder' for images in CLASS/GROUP/",
    )
    group.add_argument(
        "--corruption",
        metavar="NAME",
        help="corrupt the images; `pmt corrupt --help` lists the names (default: none). If DIR is "
        "or contains a CIFAR-10-C folder, its arrays are the corrupted test images",
    )
    group.add_argument(
        "--severity",
        metavar="S",
        type=converter(int, "1..5"),
        help="severity of the corruption, 1..5 (default: 5)",
    )
    add_constants(group)
    group.add_argument(
        *seed_names,
        metavar="S",
        dest="corruption_seed",
        type=integer(0, 2**31),
        help="seed of the corruption: the train split is corrupted with S, the test split with "
        "S + 1 (default: 0)",
    )


def data_source(arguments: argparse.Namespace) -> DataSource:
    """Return the data that the command line names; its options are checked before any file is."""
    name = arguments.corruption
    labels = chosen_labels(arguments)
    if arguments.class_names is not None:
        checked_class_names(split_names(arguments.class_names))
    names = arguments.class_names or ""
    groups = arguments.groups or ""
    if name is None:
        for option in ("severity", "constants", "corruption_seed"):
            if (given := getattr(arguments, option)) is not None:
                raise ValueError(f"{flag(option)} {given} needs --corruption NAME")
        path = data_path(arguments.data)
        return DataSource(path, labels=labels, class_names=names, groups=groups)
    if name not in corruptions.names():
        near = did_you_mean(name, corruptions.names())
        raise ValueError(f"--corruption {name!r} is unknown{near}")
    severity = 5 if arguments.severity is None else arguments.severity
    if severity not in corruptions.SEVERITIES:
        raise ValueError(f"--severity {severity} must be 1..5")
    seed, constants = arguments.corruption_seed or 0, checked_constants(arguments)
    path = data_path(arguments.data)
    return DataSource(path, name, severity, seed, labels, constants, names, groups)


def add_plot(parser: argparse._ActionsContainer, drawn: str) -> None:
    """Add the file of a plot; :func:`pmt.cli.output.check_plot` checks it before the work."""
    parser.add_argument(
        "--plot", metavar="FILE", help=f"draw {drawn}: .png, .svg or .pdf; needs matplotlib"
    )


def add_split(parser: argparse.ArgumentParser, default: str = "test") -> None:
    """Add the split to read."""
    parser.add_argument(
        "--split", metavar="NAME", default=default, help=f"train or test (default: {default})"
    )


def add_statistics_images(parser: argparse.ArgumentParser) -> None:
    """Add the number of images that statistics are measured on."""
    add_integer(
        parser,
        "--limit N",
        "measure on at most N images, always the same ones",
        default=DEFAULT_IMAGES,
        within=(1, 100_000),
    )


def add_size(parser: argparse.ArgumentParser, when: str) -> None:
    """Add the size that images are brought to, and when."""
    text = f"resize the images to PX x PX {when}"
    add_integer(parser, "--size PX", text, otherwise="keep their size", within=(1, 4096))


def add_coarse_labels(parser: argparse._ActionsContainer) -> None:
    """Add the choice between the labels of CIFAR-100."""
    parser.add_argument(
        "--coarse-labels",
        action="store_true",
        default=None,
        help="use the 20 superclasses of CIFAR-100 as labels (default: its 100 classes)",
    )


def chosen_labels(arguments: argparse.Namespace) -> Labels:
    """Return which labels of CIFAR-100 the command line asks for."""
    return "coarse" if arguments.coarse_labels else "fine"


def add_constants(parser: argparse._ActionsContainer) -> None:
    """Add the choice between the constants that were published."""
    parser.add_argument(
        "--constants",
        metavar="NAME",
        help="constants of the corruptions: cifar10, made for images of 32x32 pixels, or imagenet, "
        "stronger and made for 224x224 (default: cifar10)",
    )


def checked_constants(arguments: argparse.Namespace) -> Constants:
    """Return the constants that the command line names."""
    chosen: Constants | None = arguments.constants
    if chosen is not None and chosen not in CONSTANTS:
        raise ValueError(f"--constants {chosen!r} is unknown{did_you_mean(chosen, CONSTANTS)}")
    return chosen or "cifar10"


def chosen_corruptions(option: str, text: str) -> tuple[str, ...] | Literal["all"]:
    """Return ``all``, or the corruptions of ``fog,contrast``, each once, in the order given."""
    if text == "all":
        return "all"
    chosen = tuple(dict.fromkeys(split_names(text)))
    unknown = [name for name in chosen if name not in corruptions.names()]
    if unknown:
        near = did_you_mean(unknown[0], corruptions.names(), "choose all, or some of")
        raise ValueError(f"{option} {', '.join(map(repr, unknown))} is unknown{near}")
    return chosen


def chosen_severities(option: str, text: str) -> tuple[int, ...]:
    """Return the severities of ``1,3,5``, each once, in the order given."""
    known = {str(severity): severity for severity in corruptions.SEVERITIES}
    chosen = split_names(text)
    wrong = [repr(part) for part in chosen if part not in known]
    if wrong:
        raise ValueError(f"{option} {', '.join(wrong)}: give some of 1,2,3,4,5")
    return tuple(dict.fromkeys(known[part] for part in chosen))


def add_corruption_seed(parser: argparse.ArgumentParser, use: str) -> None:
    """Add the seed of the corruptions; `use` completes its help."""
    add_integer(parser, "--seed S", f"seed of the corruptions{use}", default=0, within=(0, 2**31))


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Add the number of threads."""
    add_integer(
        parser,
        "--threads T",
        "threads to use, 0 = all; the result does not depend on it",
        default=0,
        within=(0, 1024),
    )


def add_protocol(parser: argparse.ArgumentParser) -> None:
    """Add the protocol and its numbers."""
    group = parser.add_argument_group("split")
    group.add_argument(
        "--protocol",
        metavar="NAME",
        default="default",
        help="default: training images; paper: from each class of the test split, 100 images to "
        "adapt to and 10 to choose on (default: default)",
    )
    text = "total number of training images, balanced over the classes"
    all_of = f"{IMAGES:,}, or all if there are fewer"
    add_integer(group, "--images N", text, otherwise=all_of, within=(2, None))
    text = "how many of them are held out to choose on"
    add_integer(group, "--held-out N", text, otherwise=str(HELD_OUT), within=(0, None))
    add_integer(
        group, "--split-seed S", "seed of the choice of images", default=0, within=(0, 2**31)
    )


def split_choice(arguments: argparse.Namespace) -> SplitChoice:
    """Return the images that the command line asks for."""
    return SplitChoice(
        arguments.protocol, arguments.images, arguments.held_out, arguments.split_seed
    )


_OPTIONS = declared_options(TrainingOptions)


def add_layers(parser: argparse.ArgumentParser) -> None:
    """Add the choice of the trained layers."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--layers", metavar=_OPTIONS["layers"].metavar, help=option_help(_OPTIONS["layers"])
    )
    group.add_argument("--block", metavar="N", type=_block, help="short for --layers BN")


def _block(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} must be a number, as 2 for --layers B2")
    return int(text)


def add_rule(parser: argparse.ArgumentParser) -> None:
    """Add the choice of the layers' estimators."""
    add_options(parser, [_OPTIONS["rule"]], _papers)


def add_method(parser: argparse.ArgumentParser, *, settable: bool = True) -> None:
    """Add the choice of the method; if ``settable``, also options that have no argument here."""
    parser.add_argument(
        "--method",
        metavar="NAME",
        help="method whose options are the defaults, instead of --preset: "
        f"{', '.join(methods.METHODS)}",
    )
    if settable:
        parser.add_argument(
            "--set",
            metavar="OPTION=VALUE",
            action="append",
            help="set an option of the method that has no argument here; may be repeated",
        )


def add_plugin(parser: argparse.ArgumentParser) -> None:
    """Add the modules that register methods; :func:`named_plugins` reads them before the rest."""
    parser.add_argument(
        "--plugin",
        metavar="MODULE",
        action="append",
        help="module, or .py file, that registers a method of your own; may be repeated, or given "
        "in the environment variable PMT_PLUGINS, separated by commas",
    )


def named_plugins(argv: Sequence[str]) -> list[str]:
    """Return the modules that ``--plugin`` names; help lists their methods, too."""
    found = [given.partition("=")[2] for given in argv if given.startswith("--plugin=")]
    pairs = itertools.pairwise(argv)
    return [*found, *(name for flag, name in pairs if flag == "--plugin")]


def add_training_options(
    parser: argparse.ArgumentParser,
    *,
    without: Sequence[str] = (),
    defaults: Mapping[str, Any] | None = None,
) -> None:
    """Add the preset and its options; those in ``defaults`` have the command's own default."""
    own = defaults or {}
    group = parser.add_argument_group("training")
    group.add_argument(
        "--preset",
        metavar="NAME",
        help="default (what measured best), paper (the method as printed) or released (as in its "
        "authors' code) (default: default)",
    )
    left_out = ("layers", *without)
    options = (o for o in _OPTIONS.values() if o.name not in left_out)
    add_options(
        group,
        (dataclasses.replace(o, default=own.get(o.name, o.default)) for o in options),
        lambda option: "" if option.name in own else _papers(option),
    )


def given_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options that the command line sets, by their field."""
    given = {name: getattr(arguments, name, None) for name in _OPTIONS}
    if getattr(arguments, "block", None) is not None:
        given["layers"] = f"B{arguments.block}"
    return {name: value for name, value in given.items() if value is not None}


def training_options(arguments: argparse.Namespace) -> TrainingOptions:
    """Return the preset with the options that the command line sets."""
    name: Preset = arguments.preset or "default"
    given = given_options(arguments)
    options = preset(name, **given)
    warn_without_effect(options, given, preset(name))
    return options


def check_one_of_both(arguments: argparse.Namespace) -> None:
    """Raise ValueError where both a method and a preset are given."""
    if arguments.method is not None and arguments.preset is not None:
        raise ValueError("--method and --preset exclude each other: leave one out")


def check_preset(name: str) -> None:
    """Raise ValueError for a name that no preset has."""
    if name not in PRESETS:
        raise ValueError(f"preset={name!r} is unknown{did_you_mean(name, PRESETS)}")


def chosen_trainer(arguments: argparse.Namespace) -> Trainer:
    """Return the trainer of the method or preset, with the options that the command line sets."""
    check_one_of_both(arguments)
    name = arguments.method or arguments.preset or "default"
    if arguments.method is None:
        check_preset(name)
    given = given_options(arguments)
    own = dataclasses.asdict(methods.options_of(name))
    for foreign in (option for option in given if option not in own):
        raise OptionError(foreign, f" is not an option of the method {name}: leave it out")
    for option, value in _set_options(name, arguments.set or []):
        if option in given:
            raise ValueError(f"--set {option}: it is given twice; leave one out")
        given[option] = value
    return methods.trainer(name, threads=arguments.threads, **given)


def _set_options(method: str, assignments: list[str]) -> Iterator[tuple[str, Any]]:
    known = dataclasses.asdict(methods.options_of(method))
    for assignment in assignments:
        name, separator, text = assignment.partition("=")
        name = name.strip().replace("-", "_")
        if not separator:
            raise ValueError(
                f"--set {assignment}: must be OPTION=VALUE, with an option of {method}: "
                f"{', '.join(known)}"
            )
        if name not in known:
            near = did_you_mean(name, known)
            raise ValueError(f"--set {assignment}: {name!r} is not an option of {method}{near}")
        try:
            value = _value(text.strip(), type(known[name]))
        except (ValueError, argparse.ArgumentTypeError) as error:
            raise ValueError(f"--set {assignment}: {error}") from None
        yield name, value


def _value(text: str, kind: type) -> Any:
    if kind is not bool:
        return converter(kind)(text)
    if text not in ("yes", "no", "true", "false"):
        raise ValueError(f"{text!r} must be yes or no")
    return text in ("yes", "true")


def _papers(option: Option) -> str:
    """Return the value of the preset ``paper``, and that of ``released`` where it is another."""
    paper = PRESETS["paper"].get(option.name, option.default)
    released = PRESETS["released"].get(option.name, option.default)
    notes = [f"paper: {shown(paper)}"] if option.name in PRESETS["paper"] else []
    notes += [f"released: {shown(released)}"] if released != paper else []
    return "; ".join(notes)
