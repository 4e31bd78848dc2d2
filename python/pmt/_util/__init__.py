"""Helpers without a domain: files, text, checks, optional packages, progress, threads."""
