"""Git's own files, read without git: they say what git says that they do."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from queenbee.store.git_trees import config_entries

HEADERS = ["[core]", '[Queen-bee "a]b"]', r'[x "\"y\\"]', "[remote.Origin]"]
ENDS = ["\n", "\r\n", "\r", "\u2028", "\x85", "\v", "\f", "\x1c"]
PIECES = ["trust", "k", "=", " = ", "all", '"', "\\", "\\n", "\\\n", "#", ";", "]", " ", "\t"]
ANY = st.lists(st.sampled_from([*HEADERS, *ENDS, *PIECES, '"a # b"']), max_size=6).map("".join)
TEXTS = st.lists(ANY | ANY.map("key = {}\n".format), max_size=3)


def said_by_git(path: Path) -> list[tuple[str, str]] | None:
    """Returns the name and the value of each setting, or None if git refuses the file."""
    asked = ["git", "config", "--file", str(path), "--null", "--list"]
    done = subprocess.run(asked, capture_output=True, check=False)
    if done.returncode:
        return None
    settings = (each.partition("\n") for each in done.stdout.decode().split("\0")[:-1])
    return [(name, value if equals else "true") for name, equals, value in settings]


@settings(max_examples=examples(500))
@given(TEXTS.map("".join))
def test_a_config_file_says_what_git_reads_in_it(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "config")
        path.write_bytes(f"[core]\n{text}".encode())
        said, read = said_by_git(path), [*config_entries(str(path))]
    found = [(f"{section}.{name}", value) for section, name, value in read]
    settings = [each for each in found if re.search(r"\.[a-z][a-z0-9-]*\Z", each[0])]
    # Older versions of git read each blank within a value as a space.
    spaced = [
        [(name, re.sub(r"[\t\r]", " ", value)) for name, value in each]
        for each in (said or settings, settings)
    ]
    assert spaced[0] == spaced[1]


def test_a_file_is_read_without_loading_an_encoding(tmp_path: Path) -> None:
    """Python would open that, which a process without a descriptor left cannot."""
    (tmp_path / "config").write_bytes(b"\xef\xbb\xbf[core]\n\tbare = true\n")
    code = (
        "import sys; from queenbee.store.git_trees import config_value as value; "
        "print(value(sys.argv[1], 'core', 'bare'), 'encodings.utf_8_sig' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "config")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["true", "False"]
