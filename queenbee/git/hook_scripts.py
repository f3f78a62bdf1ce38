"""The shell scripts that git runs: the hooks, and the script that knows where queen is."""

from __future__ import annotations

from queenbee.core.text import shell_quoted

SHEBANG = "#!/bin/sh\n"
HEADER = f"{SHEBANG}# queenbee guard: made by `queen guard install`, removed by `uninstall`.\n"
BEGIN = "# >>> queenbee guard >>>\n"
END = "# <<< queenbee guard <<<\n"
RUNNER = "queenbee-guard.sh"
"""The script that knows where queen is, in git's common folder."""
CHAINED = ".before-queenbee"
"""The suffix of an existing hook's new name; it runs after the guard."""
OF_SETUP = "# `queen setup` installed the guard, so `queen setup --undo` removes it.\n"
"""The line of the runner that keeps `--undo` from removing a guard that the user installed."""

# A hook that runs after the guard may be a link to another hook with the guard.
_CALL = """\
queenbee_guard() {{
    case $0 in *.before-queenbee) return 0 ;; esac
    queenbee_runner="$(git rev-parse --git-common-dir)/queenbee-guard.sh"
    if [ -x "$queenbee_runner" ]; then
        "$queenbee_runner" "$@" >&2
    elif command -v queen >/dev/null 2>&1; then
        queen guard check {option} >&2
    elif [ -d .beads ]; then
        echo "queenbee guard: queen was not found, so nothing was checked" >&2
    fi
}}
"""
# `git revert` and `git cherry-pick` skip pre-commit and run this hook. So do rebases and
# `git commit --no-verify`, which pass. A commit by revert or cherry-pick has the message that they
# left in MERGE_MSG, and with an editor the name of their reflog entry.
_REPLAYED = """\
queenbee_replayed() {
    queenbee_dir=$(git rev-parse --git-dir) || return 1
    if [ -d "$queenbee_dir/rebase-merge" ] || [ -d "$queenbee_dir/rebase-apply" ]; then
        return 1
    fi
    case $2 in
    message)
        [ -f "$queenbee_dir/MERGE_MSG" ] && [ "$(cat "$1")" = "$(cat "$queenbee_dir/MERGE_MSG")" ]
        ;;
    merge)
        case $GIT_REFLOG_ACTION in revert* | cherry-pick*) return 0 ;; esac
        return 1
        ;;
    *) return 1 ;;
    esac
}
if queenbee_replayed "$@"; then
    queenbee_guard prepare-commit-msg "$@" || exit $?
fi
"""
# `git rebase --apply` runs this hook too, but only `git am` has this file.
_APPLIED = """\
if [ -f "$(git rev-parse --git-dir)/rebase-apply/applying" ]; then
    queenbee_guard pre-applypatch "$@" || exit $?
fi
"""
# Git passes the pushed refs on standard input. The guard reads them, and so may the hook after it.
_STEPS = {
    "pre-commit": _CALL.format(option="--staged") + 'queenbee_guard pre-commit "$@" || exit $?\n',
    "prepare-commit-msg": _CALL.format(option="--staged") + _REPLAYED,
    "pre-applypatch": _CALL.format(option="--staged") + _APPLIED,
    "pre-push": _CALL.format(option='--pre-push "$2"')
    + """\
queenbee_refs=$(cat)
if [ -n "$queenbee_refs" ]; then
    printf '%s\\n' "$queenbee_refs" | queenbee_guard pre-push "$@" || exit $?
    exec <<QUEENBEE_REFS
$queenbee_refs
QUEENBEE_REFS
else
    exec </dev/null
fi
""",
}
_CHAIN = """\
queenbee_next="$(dirname "$0")/{name}"
if [ -x "$queenbee_next" ]; then
    exec "$queenbee_next" "$@"
fi
"""
_RUNNER = """\
#!/bin/sh
# Runs the queenbee guard with the Python that `queen guard install` ran with; made by it.
{of_setup}python={python}
hook=$1
remote=$2
case $hook in
pre-push) set -- guard check --pre-push "$remote" ;;
*) set -- guard check --staged ;;
esac
status=97
if [ -x "$python" ]; then
    "$python" -E -P -X utf8 -c '
import sys
try:
    from queenbee.cli.main import main
except BaseException:
    sys.exit(97)
main()' "$@"
    status=$?
fi
if [ $status -eq 97 ] && command -v queen >/dev/null 2>&1; then
    queen "$@"
    status=$?
fi
# 97: queen was not found. Only an answer of queen stops git: held, usage, busy, unreadable.
case $status in
0 | 1 | 2 | 6 | 7 | 130) exit $status ;;
97) echo "queenbee guard: queen was not found, so nothing was checked" >&2 ;;
*) echo "queenbee guard: it failed with status $status, so nothing was checked" >&2 ;;
esac
exit 0
"""


def block(hook: str) -> str:
    """Returns the lines of a shell script that run the guard, between two marks."""
    return BEGIN + _STEPS[hook] + END


def whole_hook(hook: str) -> str:
    """Returns a hook that runs the guard, then the hook that was there before."""
    return HEADER + block(hook) + _CHAIN.format(name=hook + CHAINED)


def runner(python: str, *, of_setup: bool = False) -> str:
    """Returns the script that runs the guard on this machine, with this interpreter."""
    return _RUNNER.format(python=shell_quoted(python), of_setup=OF_SETUP if of_setup else "")


def with_block(text: str, hook: str) -> str:
    """Returns another tool's shell script with the guard before everything that it does.

    A script that has the guard gets the current version; `without_block` returns the original.
    """
    text = without_block(text)
    first = text.find("\n") + 1 if text.startswith("#!") else 0
    return text[:first] + block(hook) + text[first:]


def without_guard(text: str, hook: str, *, is_chained: bool) -> str:
    """Returns a hook without the guard: another tool's as it was, and of one that `whole_hook` made
    what somebody has added; with the call of the hook that was there before, if `is_chained`.
    """
    rest = without_block(text)
    if not rest.startswith(HEADER):
        return rest
    rest = SHEBANG + rest.removeprefix(HEADER)
    return rest if is_chained else rest.replace(_CHAIN.format(name=hook + CHAINED), "", 1)


def without_block(text: str) -> str:
    """Returns a shell script without the guard; one without it is returned unchanged."""
    begin = text.find(BEGIN)
    end = text.find(END, begin)
    return text if begin < 0 or end < 0 else text[:begin] + text[end + len(END) :]
