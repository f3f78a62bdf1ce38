"""Glob patterns as languages: what a pattern covers, and whether two patterns cover a common path.

`pattern` is the public face. `parse` reads a pattern, `segments` and `chars` compile it, `product`
and `runs` decide overlap and find a witness, `index` and `sieve` compare one pattern with
thousands. ADR 0003.
"""
