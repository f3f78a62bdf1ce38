"""Answers about the issues of a large tracker without reading all of it: ADR 0033."""
