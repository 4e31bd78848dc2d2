"""A custom estimator: evolution strategies, which see the ranks of the losses alone."""

import numpy as np

import pmt


class RankedDirections:
    queries = 32

    def __call__(self, engine, images, labels, step):
        gradients = {}
        for layer in engine.layers:
            shape = (self.queries // 2, *engine.weights(layer).shape)
            signs = engine.random(layer, step).choice(np.array([-4, 4], np.int8), shape)
            signs = np.concatenate([signs, -signs])
            losses = engine.losses(images, labels, layer, signs).mean(axis=1)
            ranks = losses.argsort().argsort() - (self.queries - 1) / 2
            gradients[layer] = np.tensordot(ranks, signs, 1)
        return gradients


model = pmt.load("fashion_mnist_dscnn")
data = pmt.corruptions.corrupt(pmt.datasets.bundled("train"), "impulse_noise", 5)
valid = pmt.corruptions.corrupt(pmt.datasets.bundled("test"), "impulse_noise", 5, seed=1)
trainer = pmt.ZOTrainer(
    estimator=RankedDirections(), layers="B2,head", epochs=1, preparation="none", learning_rate=1.0
)
result = trainer.fit(model, data, valid=valid)
print(f"{result.before['valid_accuracy']:.3f} -> {result.epochs[-1]['valid_accuracy']:.3f}")
