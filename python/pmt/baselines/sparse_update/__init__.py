"""Back-propagation that updates a part of the network: schemes, and how they are chosen."""

from pmt.baselines.backprop.scheme import LayerUpdate, UpdateScheme
from pmt.baselines.sparse_update.contribution import Contributions, analyze
from pmt.baselines.sparse_update.options import (
    PUBLISHED,
    MCUTrainOptions,
    TinyTrainOptions,
    published_scheme,
)
from pmt.baselines.sparse_update.trainer import (
    MCUTrainTrainer,
    TinyTrainTrainer,
    choose_scheme,
    tinytrain_scheme,
)

__all__ = [
    "PUBLISHED",
    "Contributions",
    "LayerUpdate",
    "MCUTrainOptions",
    "MCUTrainTrainer",
    "TinyTrainOptions",
    "TinyTrainTrainer",
    "UpdateScheme",
    "analyze",
    "choose_scheme",
    "published_scheme",
    "tinytrain_scheme",
]
