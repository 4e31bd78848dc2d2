"""Back-propagation that updates a part of the network: schemes, and how they are chosen."""

import importlib
from typing import Any

# Imported on first use: trainers need schemes, and count costs, which need schemes as well.
_MODULES = {
    "Contributions": "contribution",
    "analyse": "contribution",
    "MCUTrainOptions": "options",
    "TinyTrainOptions": "options",
    "PUBLISHED": "published",
    "published_scheme": "published",
    "LayerUpdate": "scheme",
    "UpdateScheme": "scheme",
    "MCUTrainTrainer": "trainer",
    "TinyTrainTrainer": "trainer",
    "tinytrain_scheme": "trainer",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(
            importlib.import_module(f"pmt.baselines.sparse_update.{_MODULES[name]}"), name
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
