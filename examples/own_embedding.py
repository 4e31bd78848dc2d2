"""A loss on embeddings: nearer to the prototype of the own class than to any other."""

import numpy as np

import pmt

clean, kind = pmt.datasets.bundled("train"), ("gaussian_noise", 5)
train = pmt.corruptions.corrupt(clean, *kind, seed=1)
test = pmt.corruptions.corrupt(pmt.datasets.bundled("test"), *kind, seed=2)
model = pmt.load("fashion_mnist_dscnn").features()


def unit(vectors):
    return vectors / (np.linalg.norm(vectors, axis=-1, keepdims=True) + 1e-9)


means = [model.outputs(clean.images[clean.labels == c]).mean(axis=0) for c in range(10)]
prototypes = unit(np.stack(means))


def triplet(embeddings, targets):  # (queries, samples, width) and (samples, width)
    cosines, own = unit(embeddings) @ prototypes.T, targets @ prototypes.T > 0.9999
    others = np.where(own, -1, cosines).max(axis=2)
    return np.maximum(0, 0.2 + others - (cosines * own).sum(axis=2))


data = pmt.datasets.Dataset.with_targets(train.images, prototypes[train.labels])
pmt.ZOTrainer(loss=triplet, epochs=2).fit(model, data, progress=False)
nearest = (model.outputs(test.images) @ prototypes.T).argmax(axis=1)
print(f"right by the nearest prototype: {np.mean(nearest == test.labels):.3f}")
