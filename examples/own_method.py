"""A custom method: ZO-signSGD, in which each image has one vote a direction."""

import numpy as np

import pmt


def votes(engine, images, labels, step):
    gradients = {}
    for layer in engine.layers:
        shape = (16, *engine.weights(layer).shape)
        signs = engine.random(layer, step).choice(np.array([-4, 4], np.int8), shape)
        forwards = engine.losses(images, labels, layer, signs)
        backwards = engine.losses(images, labels, layer, -signs)
        gradients[layer] = np.tensordot(np.sign(forwards - backwards).sum(axis=1), signs, 1)
    return gradients


pmt.methods.register(
    "zo_sign",
    "one vote a direction and image",
    source="Liu et al. 2019: signSGD via zeroth-order oracle (ICLR)",
    estimator=votes,
    preparation="none",
    learning_rate=1.0,
)
