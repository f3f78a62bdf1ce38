"""Writes the rules for credentials from those of detect-secrets, with the option `--write`.

`tests/services/writing/test_secrets.py` fails when they differ from the version that is installed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

from queenbee.services.writing import credentials

LEFT_OUT = {
    "Base64 High Entropy String",
    "Hex High Entropy String",
    "Public IP (ipv4)",
    "Secret Keyword",
}
"""The first two judge by entropy and would refuse every commit hash, an address is no credential,
and the last takes cubic time: `secrets._ASSIGNED` finds what it finds.
"""


def rules() -> list[dict[str, object]]:
    """Returns what detect-secrets looks for, as the file holds it."""
    found = []
    for kind, plugin in sorted(get_mapping_from_secret_type_to_class().items()):
        if kind in LEFT_OUT:
            continue
        for expression in plugin.denylist:
            flags = "".join(
                letter for letter, flag in credentials.FLAGS.items() if expression.flags & flag
            )
            found.append({"kind": kind, "pattern": expression.pattern, "flags": flags})
    return found


def text() -> str:
    """Returns the whole file."""
    lines = ",\n".join(f"  {json.dumps(rule)}" for rule in rules())
    return f"[\n{lines}\n]\n"


if __name__ == "__main__" and "--write" in sys.argv:
    Path(credentials.PATH).write_text(text(), encoding="utf-8")
