"""Glob patterns as languages: what a pattern covers, and whether two cover a common path."""
