# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Your own loss and estimator
#
# For users who extend pmt ([guide](../docs/guides/extending.md)).
#
# Training that uses only forward passes needs no gradient of the score. Here an int8 network
# learns what its errors cost: a table of prices for mistaking one class for another, whose
# gradient is zero almost everywhere. Then an estimator that sees only the order of the losses does
# the same.
#
# In a clone: `pip install ".[notebook]"`. It takes about half a minute.

# %%
# Installs what is missing, as in Colab; until an index has pmt, give pip the paths of its wheels.
from importlib.util import find_spec

from IPython import get_ipython

if find_spec("pmt") is None:
    get_ipython().run_line_magic("pip", "install --quiet poor-mans-training[plot]")

# %%
import matplotlib.pyplot as plt
import numpy as np

import pmt

clean = pmt.datasets.bundled("test")
train = pmt.corruptions.corrupt(pmt.datasets.bundled("train"), "gaussian_noise", 5, seed=1)
test = pmt.corruptions.corrupt(clean, "gaussian_noise", 5, seed=2)

# %% [markdown]
# ## What errors cost
#
# A wrong class costs 1. Mistaking footwear for clothing, or the reverse, costs 5.

# %%
footwear = np.isin(clean.class_names, ("Sandal", "Sneaker", "Ankle boot"))
prices = np.where(footwear[:, None] == footwear[None, :], 1.0, 5.0)
np.fill_diagonal(prices, 0.0)


def price(logits, labels):
    """Logits float32 (queries, samples, classes), labels (samples,) -> losses."""
    return prices[labels, logits.argmax(axis=2)]


def mean_price(model):
    return price(model.logits(test.images)[None], test.labels).mean()


def tell(model):
    accuracy = model.evaluate(test).accuracy
    print(f"noisy images: accuracy {accuracy:.1%}, an image costs {mean_price(model):.3f}")


model = pmt.load("fashion_mnist_dscnn")
tell(model)

# %% [markdown]
# ## The price as the loss
#
# Any function of the logits can be the loss. The core runs the perturbed forwards and passes on
# the logits of all queries of a layer. A query changes the price only if it changes a class, so
# the perturbations are larger and there are more of them. The preparation is left out, since it
# trains the head by cross-entropy.

# %%
priced = pmt.load("fashion_mnist_dscnn")
trainer = pmt.ZOTrainer(
    loss=price, layers="B1,head", preparation="none", queries=32, mu_node=8, epochs=4
)
result = trainer.fit(priced, train, progress=False)
tell(priced)

# %% [markdown]
# ## An estimator of your own
#
# An estimator is a callable that returns a gradient for each layer; the engine evaluates perturbed
# weights at the speed of the core. This one is an evolution strategy: it weights directions by the
# rank of their price.


# %%
class RankedDirections:
    queries = 32

    def __call__(self, engine, images, labels, step):
        gradients = {}
        for layer in engine.layers:
            shape = (self.queries // 2, *engine.weights(layer).shape)
            signs = engine.random(layer, step).choice(np.array([-4, 4], np.int8), shape)
            signs = np.concatenate([signs, -signs])
            prices_of = price(engine.logits(images, layer, signs), labels).mean(axis=1)
            ranks = prices_of.argsort(kind="stable").argsort() - (self.queries - 1) / 2
            gradients[layer] = np.tensordot(ranks, signs, 1)
        return gradients


ranked = pmt.load("fashion_mnist_dscnn")
trainer = pmt.ZOTrainer(
    estimator=RankedDirections(), layers="B1,head", preparation="none", epochs=2, learning_rate=0.5
)
trainer.fit(ranked, train, progress=False)
tell(ranked)

# %% [markdown]
# ## The result
#
# For comparison the same layers are trained by cross-entropy, with the same settings as the first
# training except for the loss.

# %%
plain = pmt.load("fashion_mnist_dscnn")
trainer = pmt.ZOTrainer(layers="B1,head", preparation="none", queries=32, mu_node=8, epochs=4)
trainer.fit(plain, train, progress=False)
tell(plain)

names = ("as it was", "cross-entropy", "price as the loss", "ranked directions")
models = (model, plain, priced, ranked)
for name, one in zip(names, models, strict=True):
    wrong = 1 - one.evaluate(test).accuracy
    print(f"{name:<19}a wrong image costs {mean_price(one) / wrong:.2f}")
figure, ax = plt.subplots(figsize=(5, 2.6), layout="constrained")
ax.barh(names, [mean_price(one) for one in models], color="tab:blue")
ax.set_xlabel("price of a noisy test image")
ax.invert_yaxis()
plt.show()

# %% [markdown]
# All three lower the price by a third or more, because fewer images are wrong. Training on the
# price ends where cross-entropy does, without a gradient. The cost of a wrong image is about the
# same after each: with some 150 of them, small differences are noise.
#
# Next: [extending pmt](../docs/guides/extending.md), with everything that a loss and an estimator
# can do.
