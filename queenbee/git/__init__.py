"""What needs git itself: the guard and its hooks, and what git lacks of a hive.

`run` starts git; `changes` asks it what a commit or a push changes; `guard` decides whether that
may pass; `hooks` and `hook_scripts` make git run the guard; `left_out` finds what was not
committed. `unmerged` knows what each worktree has that the main branch lacks: from it, `touched`
tells who else works in a file, `lines` where two changes of it meet, and `collisions` which
worktrees conflict.
"""
