"""Back-propagation that updates a part of the network: schemes, and how they are chosen."""

import importlib
from typing import Any

# Imported on first use: trainers need schemes, and count costs, which need schemes as well.
_MODULES = {
    "Contributions": "pmt.baselines.sparse_update.contribution",
    "analyse": "pmt.baselines.sparse_update.contribution",
    "MCUTrainOptions": "pmt.baselines.sparse_update.options",
    "TinyTrainOptions": "pmt.baselines.sparse_update.options",
    "PUBLISHED": "pmt.baselines.sparse_update.options",
    "published_scheme": "pmt.baselines.sparse_update.options",
    "LayerUpdate": "pmt.baselines.backprop.scheme",
    "UpdateScheme": "pmt.baselines.backprop.scheme",
    "MCUTrainTrainer": "pmt.baselines.sparse_update.trainer",
    "TinyTrainTrainer": "pmt.baselines.sparse_update.trainer",
    "tinytrain_scheme": "pmt.baselines.sparse_update.trainer",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
