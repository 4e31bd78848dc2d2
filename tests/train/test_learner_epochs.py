"""Epochs of a learner are those of `fit`."""

import pytest

import pmt
from pmt import corruptions, datasets
from pmt.errors import OptionError


@pytest.mark.parametrize("final", [0.0, 0.5])
def test_epochs_of_a_learner_are_those_of_fit_to_the_byte(final):
    data = corruptions.corrupt(datasets.bundled("train").take(120), "impulse_noise", 5, seed=0)
    model = pmt.load("fashion_mnist_dscnn")
    options = pmt.preset("default", layers="B2,head", batch=4, queries=4, epochs=2, seed=3)
    options = options.replace(preparation="none", keep_best=False, final_learning_rate=final)
    learner = pmt.Learner(model, samples=120, held_out=20, options=options)
    learner.observe(data.images[:100], data.labels[:100], role="train")
    learner.observe(data.images[100:], data.labels[100:], role="hold_out")
    assert learner.learn("epochs") == "trained"
    learner.commit()
    learned, fitted = learner.model().core, model.copy()
    pmt.ZOTrainer(options).fit(fitted, data.take(100), progress=False)
    changed = 0
    for index in [layer.index for layer in model.layers]:
        assert learned.weights(index).tolist() == fitted.core.weights(index).tolist()
        assert learned.bias(index).tolist() == fitted.core.bias(index).tolist()
        changed += (learned.weights(index) != model.core.weights(index)).sum()
    assert changed > 200


def test_more_epochs_than_a_learner_can_count_are_refused():
    options = pmt.preset("default", layers="B2", epochs=2**19)
    message = r"^epochs=524288: with samples=4096 these are 2\^31 or more; take fewer$"
    with pytest.raises(OptionError, match=message):
        pmt.Learner(pmt.load("fashion_mnist_dscnn"), samples=4096, options=options)
