"""The options that the help of a long command shows; ``--help-all`` shows the others too."""

from __future__ import annotations

__all__ = ["BASIC", "LONG"]

# Commands that take every option of the training.
LONG = ("train", "select", "export")
BASIC = (
    *("--data", "--corruption", "--severity", "--classes", "--layers", "--block", "--method"),
    *("--epochs", "--macs", "--batch", "--queries", "--learning-rate", "--seed", "--keep-best"),
    *("--out", "--resume", "--threads", "--json", "--help", "--help-all"),
    *("--blocks", "--criterion", "--seeds", "--images", "--held-out", "--plot"),
    *("--target", "--format", "--steps", "--select", "--force", "--from"),
)
