"""``pmt download``: download a data set, or list them."""

import argparse

from pmt import datasets
from pmt._util.text import did_you_mean, table
from pmt.cli.output import Output

USAGE = "pmt download [NAME ...] [--root DIR] [--json PATH]"
SUMMARY = "fetch data sets, checked by their SHA-256"
DESCRIPTION = """\
Fetch data sets into the folder of the environment variable PMT_DATA, or the cache folder of the
platform; `--data NAME` then reads them. The same command continues an interrupted download. Without
a NAME, list what can be fetched, with sizes and terms."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help=f"one of {', '.join(datasets.CATALOG)}"
    )
    parser.add_argument(
        "--root",
        metavar="DIR",
        help="folder in which each data set gets a subfolder (default: that of PMT_DATA, or pmt in "
        "the cache folder)",
    )


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    if not arguments.names:
        output.text(_listing())
        output.figures({name: _figures(name) for name in datasets.CATALOG})
        return 0
    unknown = [name for name in arguments.names if name not in datasets.CATALOG]
    if unknown:
        near = did_you_mean(unknown[0], datasets.CATALOG)
        raise ValueError(f"NAME {unknown[0]!r} is unknown{near}")
    fetched = {}
    for name in arguments.names:
        folder = datasets.download(name, arguments.root)
        output.text(f"{name}: {folder}")
        fetched[name] = {**_figures(name), "path": str(folder)}
    output.figures(fetched)
    return 0


def _figures(name: str) -> dict[str, object]:
    source = datasets.CATALOG[name]
    files = [{"url": f.url, "bytes": f.size, "sha256": f.sha256} for f in source.files]
    return {"title": source.title, "terms": source.terms, "files": files}


def _listing() -> str:
    rows = []
    for name, source in datasets.CATALOG.items():
        size = sum(file.size for file in source.files)
        rows.append([name, source.title, f"{size / 1e6:,.0f}", source.terms])
    return table(["name", "data set", "MB", "terms"], rows, left=("name", "data set", "terms"))
