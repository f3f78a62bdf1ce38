"""The command `queen-hook`: agents run it around every edit, so it must end in milliseconds.

`main` says how an event becomes an answer. `claude` and `json_text` have no part in that: they
add the hook to Claude Code's settings and remove it.
"""
