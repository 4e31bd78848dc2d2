"""Names and metadata of an image: refused when it is loaded, and when it is saved."""

import pytest
from image_sections import with_renamed, with_section
from networks import smooth_network

import pmt
from pmt.net.image import build_image, read_graph

DAMAGED_METADATA = {
    "nested": (
        b"[" * 100_000,
        "image: metadata: is not valid JSON: it is nested more than 64 deep; "
        "import the model again",
    ),
    "cut": (
        b'{"name": ',
        "image: metadata: is not valid JSON: Expecting value: line 1 column 10 "
        "(char 9); import the model again",
    ),
    "infinite": (
        b'{"accuracy": 1e999}',
        "image: metadata: is not valid JSON: inf is not a finite number; import the model again",
    ),
    "list": (
        b"[1, 2]",
        "image: metadata: must be an object of names and values, is list [1, 2]; "
        "import the model again",
    ),
    "text": (
        b'"name"',
        "image: metadata: must be an object of names and values, is str 'name'; "
        "import the model again",
    ),
}


@pytest.mark.parametrize("case", DAMAGED_METADATA)
def test_metadata_that_is_no_object_is_refused_at_load(case, tmp_path):
    payload, message = DAMAGED_METADATA[case]
    image = with_section(smooth_network(), "metadata", payload)
    with pytest.raises(ValueError, match=r"^image: metadata: ") as caught:
        pmt.Model(image)
    assert str(caught.value) == message
    with pytest.raises(ValueError, match=r"^image: metadata: ") as caught:
        read_graph(image)
    assert str(caught.value) == message
    path = tmp_path / "net.pmt"
    path.write_bytes(image)
    with pytest.raises(ValueError, match="metadata") as caught:
        pmt.load(path)
    assert str(caught.value) == f"{path}: {message}"


def test_an_image_without_metadata_holds_none():
    image = with_section(smooth_network(), "metadata", b"")
    assert pmt.Model(image).metadata == {}
    assert read_graph(image).metadata == {}


@pytest.mark.parametrize(
    ("old", "new"), [("conv", b"caf\xe9"), ("B1", b"B\xff"), ("head", b"\xed\xa0\x80")]
)
def test_names_that_are_not_utf8_are_refused_at_load(old, new, tmp_path):
    image = with_renamed(smooth_network(), old, new)
    path = tmp_path / "net.pmt"
    path.write_bytes(image)
    with pytest.raises(ValueError, match="UTF-8") as caught:
        pmt.load(path)
    assert str(caught.value) == (
        f"{path}: image: name or metadata {new!r} is not UTF-8 text; import the model again"
    )
    with pytest.raises(ValueError, match="is not UTF-8 text; import the model again"):
        read_graph(image)


def test_metadata_that_is_not_utf8_is_refused_at_load():
    image = with_section(smooth_network(), "metadata", b'{"name": "caf\xe9"}')
    with pytest.raises(ValueError, match=r"^image: name or metadata b'.*' is not UTF-8 text; "):
        pmt.Model(image)
    with pytest.raises(ValueError, match=r"^image: metadata: is not UTF-8 text; "):
        read_graph(image)


def nested(depth):
    value = 1
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ([1], r"^metadata: must be a dict, is list \[1\]$"),
        ("name", "^metadata: must be a dict, is str 'name'$"),
        (None, "^metadata: must be a dict, is NoneType None$"),
        (nested(100), "^metadata: must hold .* nested more than 64 deep; shorten"),
        (nested(100_000), "^metadata: must hold .* maximum recursion"),
        ({"a": 2**64}, "^metadata: must hold .* an integer has more than 64 bits; shorten"),
        ({"a": "\ud800"}, "^metadata: must hold .* is not UTF-8 text; shorten"),
    ],
)
def test_metadata_that_could_not_be_loaded_is_refused_at_save(metadata, message):
    graph = smooth_network().to_graph()
    graph.metadata = metadata
    with pytest.raises(ValueError, match=message):
        build_image(graph)


def test_a_name_that_utf8_cannot_hold_is_refused_at_save():
    graph = smooth_network().to_graph()
    graph.ops[0].name = "conv\ud800"
    with pytest.raises(ValueError, match=r"^name 'conv\\ud800': is not UTF-8 text, rename it$"):
        build_image(graph)


def test_a_name_of_several_ops_is_refused_at_load():
    image = with_section(smooth_network(), "names", bytes(200))
    with pytest.raises(ValueError, match=r"^image: '' is the name of several ops; "):
        pmt.Model(image)
