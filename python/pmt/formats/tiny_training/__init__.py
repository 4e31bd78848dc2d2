"""The pickles of the tiny-training project."""
