"""What needs git itself: the guard and its hooks, and what git lacks of a hive.

`run` starts git; `changes` asks it what a commit or a push changes; `guard` decides whether that
may pass; `hooks` and `hook_scripts` make git run the guard; `left_out` finds what was not
committed; `collisions` finds conflicts between worktrees.
"""
