"""Zeroth-order training: options, schedule, run, trainer, and what prepares a model."""
