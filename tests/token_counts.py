"""How many tokens a text costs the model that reads it. Works without a network."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    # It reads its vocabulary by a name that Python 3.11 calls old and 3.13 no longer does.
    warnings.simplefilter("ignore", DeprecationWarning)
    from bpe_openai import get_encoding


def tokens(text: str) -> int:
    """Returns the number of tokens, by a vocabulary of 200,000 of them."""
    return len(get_encoding("o200k_base").encode(text))
