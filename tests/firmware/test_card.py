"""The card as the host reads it back."""

import zlib
from pathlib import Path

import numpy as np
import pytest
from firmware_tools import TARGET, random_dataset
from networks import residual_network

import pmt
from pmt.cli import main
from pmt.firmware.export import export, read_card
from pmt.model.card import (
    BLOCK,
    CARD_VERSION,
    PAYLOAD,
    CardHeader,
    block_count,
    pack_blocks,
    pack_records,
    read_payload,
)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "fw"
    model = residual_network()
    options = pmt.preset(
        "default", layers="B3,head", batch=3, queries=4, loss="entropy", diversity=0.5
    )
    data = random_dataset(model, 9)
    export(model, target=TARGET, out=folder, dataset=data, options=options, save_interval=3)
    return (folder / "card.img").read_bytes()


def trained_model(change: int) -> pmt.Model:
    """The model with the head's biases moved."""
    model = residual_network()
    head = model.select_layers("head")[0]
    model.core.set_parameters(head, model.core.weights(head), model.core.bias(head) + change)
    return model


def with_checkpoint(card: bytes, slot: int, sequence: int, steps: int) -> bytes:
    """The card with what a board would write: the head's biases are moved by `sequence`."""
    header = CardHeader.unpack(card)
    model = trained_model(sequence)
    layers = model.select_layers("B3,head")
    payload = b"".join(
        model.core.weights(op).tobytes() + model.core.bias(op).tobytes() for op in layers
    )
    payload += bytes(4 * header.surprisal_values)
    first = header.first_slot + slot * header.slot_blocks
    words = (header.model_crc32, sequence, 1 << 31 | steps, len(payload), zlib.crc32(payload))
    record = (int.from_bytes(b"PTMS", "little"), 1, *words)
    head = pack_records("slot", [(*record, 0)])[:28]
    head += zlib.crc32(head).to_bytes(4, "little")
    blocks = pack_blocks(head, first) + pack_blocks(payload, first + 1)
    return card[: first * BLOCK] + blocks + card[first * BLOCK + len(blocks) :]


def written(path: Path, card: bytes) -> Path:
    path.write_bytes(card)
    return path


def test_a_new_card(tmp_path, exported):
    contents = read_card(written(tmp_path / "card.img", exported))
    assert (contents.steps, contents.samples, contents.steps_done) == (5, 9, 0)
    assert contents.checkpoints == ()
    assert contents.damage == ()
    assert contents.model.image() == residual_network().image()


def test_the_header_is_what_was_exported(exported):
    header = CardHeader.unpack(exported)
    assert len(exported) == header.blocks * BLOCK
    assert (header.batch, header.steps, header.layers, header.ops) == (3, 5, 2, 8)
    assert header.save_interval == 3
    assert header.surprisal_values == residual_network().classes
    assert header.sections["options"] == (1, len(pmt._core.Options().pack()))
    assert header.sections["layer_list"] == (2, 8)


def test_the_newest_checkpoint_is_the_model(tmp_path, exported):
    card = with_checkpoint(with_checkpoint(exported, 0, 1, 3), 1, 2, 5)
    path = written(tmp_path / "card.img", card + b"the rest of an SD card")
    contents = read_card(path)
    assert [(c.slot, c.sequence, c.steps) for c in contents.checkpoints] == [(1, 2, 5), (0, 1, 3)]
    assert contents.steps_done == 5
    assert pmt.load(path).image() == trained_model(2).image()
    assert contents.checkpoints[1].model.image() == trained_model(1).image()


def test_a_torn_checkpoint_leaves_the_one_before(tmp_path, exported):
    card = bytearray(with_checkpoint(with_checkpoint(exported, 0, 1, 3), 1, 2, 5))
    header = CardHeader.unpack(card)
    torn = header.first_slot + header.slot_blocks + 2
    card[torn * BLOCK + 30] ^= 1
    contents = read_card(written(tmp_path / "card.img", bytes(card)))
    assert contents.steps_done == 3
    assert contents.damage == (f"slot 1: block {torn} is damaged: its checksum differs",)
    card[header.first_slot * BLOCK] ^= 1
    with pytest.raises(ValueError, match=r"card.img: both checkpoints are damaged \(slot 0: block"):
        read_card(written(tmp_path / "card.img", bytes(card)))


def test_blocks_of_two_checkpoints_are_none(tmp_path, exported):
    card = bytearray(with_checkpoint(with_checkpoint(exported, 0, 1, 3), 1, 2, 5))
    header = CardHeader.unpack(card)
    last = header.first_slot + header.slot_blocks - 1
    other = read_payload(card, last + header.slot_blocks, PAYLOAD)
    card[last * BLOCK : (last + 1) * BLOCK] = pack_blocks(other, last)
    contents = read_card(written(tmp_path / "card.img", bytes(card)))
    assert contents.damage == ("slot 0: the checkpoint is not the one that its header tells",)


def changed(card: bytes, **changes: object) -> bytes:
    return pack_blocks(CardHeader.unpack(card)._replace(**changes).pack(), 0) + card[BLOCK:]


def with_short_model(card: bytes) -> bytes:
    sections = CardHeader.unpack(card).sections
    return changed(card, sections={**sections, "model": (sections["model"].first, 15)})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda card: b"", "this is not a card of `pmt export`: it does not begin with PMTD"),
        (lambda card: b"MBR " + card[4:], "it does not begin with PMTD"),
        (lambda card: card[:40] + b"\xff" + card[41:], "block 0 is damaged: its checksum differs"),
        (
            lambda card: changed(card, version=2),
            f"has version 2, this pmt reads {CARD_VERSION}; export again",
        ),
        (
            lambda card: card[:4] + b"\x0b" + card[5:],
            f"has version 11, this pmt reads {CARD_VERSION}; export again",
        ),
        (lambda card: card[:-BLOCK], "blocks, the card [0-9]+; copy all of it"),
        (lambda card: changed(card, model_crc32=1), "the model on the card is another than its"),
        (
            with_short_model,
            "card.img: the card's model has 15 bytes, which is not an image; export again",
        ),
    ],
)
def test_what_is_no_card_is_refused(tmp_path, exported, damage, message):
    path = written(tmp_path / "card.img", damage(exported))
    with pytest.raises(ValueError, match=message) as raised:
        read_card(path)
    assert str(raised.value).startswith(str(path))


def test_every_flipped_bit_of_the_needed_blocks_is_found(tmp_path, exported):
    header = CardHeader.unpack(exported)
    first, size = header.sections["model"]
    rng = np.random.default_rng(3)
    for block in (0, 2, *range(first, first + block_count(size))):
        card = bytearray(exported)
        card[block * BLOCK + int(rng.integers(4, BLOCK))] ^= 1 << int(rng.integers(8))
        with pytest.raises(ValueError, match=f"block {block} is damaged"):
            read_card(written(tmp_path / "card.img", bytes(card)))


def test_a_card_without_checkpoints_is_no_trained_model(tmp_path, exported):
    path = written(tmp_path / "card.img", exported)
    with pytest.raises(ValueError, match="the card holds no checkpoint; the board writes them"):
        pmt.load(path)


def test_the_only_checkpoint_is_damaged(tmp_path, exported, capsys):
    card = bytearray(with_checkpoint(exported, 0, 1, 3))
    block = CardHeader.unpack(card).first_slot + 1
    card[block * BLOCK + 40 : block * BLOCK + 48] = b"damaged!"
    path = written(tmp_path / "card.img", bytes(card))
    for command in (["convert", str(path), str(tmp_path / "model.pmt")], ["info", str(path)]):
        assert main(command) == 2
        assert capsys.readouterr().err == (
            f"pmt: error: {path}: the card holds no whole checkpoint (slot 0: block {block} is "
            "damaged: its checksum differs); write card.img to it again, and train\n"
        )


def test_convert_reads_the_trained_model(tmp_path, exported, capsys):
    path = written(tmp_path / "card.img", with_checkpoint(exported, 1, 7, 4))
    assert main(["convert", str(path), str(tmp_path / "model.pmt")]) == 0
    assert pmt.load(tmp_path / "model.pmt").image() == trained_model(7).image()
    assert f"{tmp_path / 'model.pmt'}: a .pmt image, 2,864 bytes" in capsys.readouterr().out


def test_blocks():
    payload = bytes(range(256)) * 4
    blocks = pack_blocks(payload, first=7)
    assert len(blocks) == 3 * BLOCK
    card = bytes(7 * BLOCK) + blocks
    assert read_payload(card, 7, len(payload)) == payload
    assert blocks[:PAYLOAD] == payload[:PAYLOAD]
    with pytest.raises(ValueError, match="block 6 is damaged"):
        read_payload(bytes(6 * BLOCK) + blocks, 6, 10)
    with pytest.raises(ValueError, match="block 10 lies outside the card, which has 10 blocks"):
        read_payload(card, 9, 600)
