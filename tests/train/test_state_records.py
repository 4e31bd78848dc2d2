"""The records of a run have the keys and types that editors are told."""

from typing import get_type_hints

import pmt
from pmt.train.run.metrics import StateRecord


def test_records_hold_what_their_type_says():
    images = pmt.datasets.bundled("train")
    model = pmt.statistics(pmt.load("fashion_mnist_dscnn"), images[:64].images)
    noisy = pmt.corruptions.corrupt(images[:300], "impulse_noise", 5, seed=1)
    trainer = pmt.ZOTrainer(layers="B2,head", epochs=1, queries=2)
    result = trainer.fit(model, noisy[:200], valid=noisy[200:])
    records = [*result.phases, *result.epochs, result.kept, result.refit]
    assert len(result.phases) > 1
    assert len(result.epochs) == 1
    kinds = get_type_hints(StateRecord)
    for record in records:
        assert [key for key in record if key not in kinds] == []
        for key, value in record.items():
            assert isinstance(value, (int, float) if kinds[key] is float else kinds[key])
    assert {"train_loss", "valid_accuracy", "held_out_loss", "macs"} <= set(result.epochs[0])
