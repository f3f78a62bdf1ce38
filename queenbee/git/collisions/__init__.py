"""Conflicts between worktrees before anybody merges: ADR 0024, docs/worktrees.md.

`comparing.compare` is the whole of it. `cache` is a folder for objects that belong to nobody's
repository; `snapshots` makes a commit of what a worktree has now; `pairs` merges each two in
memory; `order` finds an order to land in; `together` runs the check on all of them;
`found` are the answers.
"""
