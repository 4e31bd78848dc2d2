"""One run of a sweep: everything that decides its bytes, and its cost."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

# The method that trains nothing: the model as it is, on the corrupted test images.
NO_ADAPTATION = "no_adaptation"
# Raise it when the meaning of an entry changes; old folders are then left alone, not mistaken.
_FORMAT = 1


@dataclass(frozen=True)
class RunSpec:
    """A run: a method on one corruption with one seed.

    ``method`` is its name in the grid, ``base`` the method that it is based on, where
    ``"no_adaptation"`` trains nothing, and ``trainer`` the kind of trainer, empty for that one.
    ``extensions`` name the estimator and optimizer of a method of the user's own.
    Clean images are ``corruption`` ``"none"`` with ``severity`` 0. ``options`` are all of the
    trainer, ``layers`` and ``seed`` among them. ``model`` and ``data`` have paths and import
    options: where to find what the checksums of ``contents`` name, which may differ between
    machines. ``order`` has the places of method, preparation and corruption in the grid, for the
    order of a report; ``macs`` is the work of the training.

    ``trial`` is the factor of the method's own learning rate in a trial, whose test images are not
    used; 0 in a run of the tables. While a run ``awaits_rate``, that trials are still to choose, it
    cannot be done; ``tuning`` is the account of the choice, for the result.
    """

    method: str
    base: str
    trainer: str
    corruption: str
    severity: int
    options: Mapping[str, Any]
    model: Mapping[str, Any]
    data: Mapping[str, Any]
    contents: Mapping[str, Any]
    protocol: Mapping[str, Any]
    order: Mapping[str, int]
    macs: int = 0
    trial: float = 0.0
    awaits_rate: bool = False
    tuning: Mapping[str, Any] = field(default_factory=dict)
    extensions: Mapping[str, str] = field(default_factory=dict)

    @property
    def trains(self) -> bool:
        """Whether the run changes the model at all."""
        return self.base != NO_ADAPTATION

    @property
    def group(self) -> tuple[str, str, str]:
        """The key of a learning rate: method, preparation, layers."""
        return (
            self.method,
            str(self.options.get("preparation", "none")),
            str(self.options.get("layers", "")),
        )

    @property
    def axes(self) -> dict[str, Any]:
        """The run's place in the grid; a run that trains nothing has no layers and no seed."""
        method, preparation, layers = self.group
        return {
            "method": method,
            "corruption": self.corruption,
            "severity": self.severity,
            "layers": layers,
            "preparation": preparation,
            "seed": self.options.get("seed"),
        }

    @property
    def title(self) -> str:
        """The run in a few words."""
        where = self.corruption if not self.severity else f"{self.corruption} {self.severity}"
        if not self.trains:
            return f"{self.method}, {where}"
        method, preparation, layers = self.group
        prepared = "" if preparation == "none" else f", {preparation}"
        title = f"{method}, {where}, {layers}{prepared}, seed {self.options['seed']}"
        return f"trial of rate {self.options['learning_rate']:g}, {title}" if self.trial else title

    @property
    def _identity(self) -> dict[str, Any]:
        return {
            **({"trial": True} if self.trial else {}),
            **({"extensions": dict(self.extensions)} if self.extensions else {}),
            "base": self.base,
            "trainer": self.trainer,
            "options": dict(self.options),
            "contents": dict(self.contents),
            "protocol": dict(self.protocol),
        }

    @cached_property
    def hash(self) -> str:
        """The name of the run's folder."""
        place = {"method": self.method, "corruption": self.corruption, "severity": self.severity}
        return fingerprint({**self._identity, **place})

    def definition(self) -> dict[str, Any]:
        """Return the part of ``result.json`` that is known before the run."""
        return {**self._identity, "hash": self.hash, "axes": self.axes, "order": dict(self.order)}

    def source(self) -> dict[str, Any]:
        """Return the contents of ``config.toml``: no paths, so that any machine resumes the run."""
        return {
            "sweep": self.hash,
            "method": self.method,
            "base": self.base,
            "corruption": self.corruption,
            "severity": self.severity,
            **self.contents,
            **{f"protocol_{key}": value for key, value in self.protocol.items()},
            **({"trial": True} if self.trial else {}),
        }


def fingerprint(identity: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits that stand for a run: JSON values in any order of the keys.

    They are the first 64 bits of the SHA-256 of a format number and the canonical JSON of
    ``identity`` (sorted keys, no spaces, ASCII): the same on every machine and in every Python;
    ``1`` and ``1.0`` differ. A ValueError or TypeError says that a value is not finite, or no JSON.
    """
    whole = {"format": _FORMAT, "identity": identity}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]
