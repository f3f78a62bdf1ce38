"""Glob patterns as languages: what a pattern covers, and whether two cover a common path.

`pattern` compares two patterns, `sieve` one with thousands, and `by_folder` many with many. Below
them, `parse` reads a pattern, `segments` and `chars` compile it, and `product` and `runs` decide
overlap and find a witness. ADR 0003.
"""
