"""Names that a model's file chose for its layers, in the files that are made from it."""

import zipfile
from dataclasses import replace

from firmware_tools import TARGET, random_dataset
from networks import residual_network

import pmt
from pmt import formats
from pmt.firmware.export import export
from pmt.train.options import TrainingOptions

NAME = '\x1b]0;p\x07"\n*/ #error p\n<script>x</script>,=1+1,../../'


def hostile() -> pmt.Model:
    graph = residual_network().to_graph()
    graph.ops = [replace(op, name=f"{NAME}{i}") for i, op in enumerate(graph.ops)]
    graph.metadata = {**graph.metadata, "name": NAME}
    return pmt.Model.from_graph(graph)


def check(text: str) -> None:
    assert "\x1b" not in text
    assert "\n*/ #error" not in text
    assert "<script>" not in text


def test_the_readme_and_sources_of_a_firmware_hold_no_layers_name_as_it_is(tmp_path):
    model = hostile()
    options = TrainingOptions(layers="head", batch=2, queries=2, preparation="none")
    data = random_dataset(model, 4)
    export(model, out=tmp_path / "fw", target=TARGET, dataset=data, options=options, steps=1)
    check((tmp_path / "fw" / "README.md").read_text())
    for path in (tmp_path / "fw" / "model").glob("*.[hc]pp"):
        check(path.read_text())


def test_no_file_of_an_archive_is_outside_of_it(tmp_path):
    graph = residual_network().to_graph()
    names = ["/etc/x", "../../up", "..", "block1/conv", NAME, "a..b"]
    ops = graph.ops
    graph.ops = [replace(op, name=names[i]) if i < len(names) else op for i, op in enumerate(ops)]
    formats.write(graph, tmp_path / "m.npz")
    members = zipfile.ZipFile(tmp_path / "m.npz").namelist()
    folders = {name.rpartition("/")[0] for name in members}
    assert not any(name.startswith("/") or ".." in name.split("/") for name in members)
    assert "block1/conv" in folders
    for name in members:
        check(name.replace("<script>", ""))
