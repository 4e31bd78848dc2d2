"""Helpers without a domain: files, text, progress, threads."""
