"""The shell scripts of the guard: valid for a plain shell, and removed without a trace."""

from __future__ import annotations

import subprocess

import pytest

from queenbee.git import hook_scripts

HOOKS = ("pre-commit", "prepare-commit-msg", "pre-applypatch", "pre-push")


@pytest.mark.parametrize("hook", HOOKS)
def test_the_scripts_are_valid_for_a_plain_shell(hook: str) -> None:
    for text in (hook_scripts.whole_hook(hook), hook_scripts.runner("/it's here/python")):
        done = subprocess.run(["sh", "-n"], input=text, text=True, capture_output=True)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "text", ["", "#!/bin/sh\n", "#!/bin/bash\nset -e\nx\n", "echo\n", "#!/bin/sh"]
)
def test_the_block_can_be_removed_from_a_script_exactly(text: str) -> None:
    for hook in HOOKS:
        changed = hook_scripts.with_block(text, hook)
        assert hook_scripts.BEGIN in changed
        assert hook_scripts.with_block(changed, hook) == changed
        assert hook_scripts.without_block(changed) == text
