"""The command `queen-hook`: agents run it around every edit, so it must end in milliseconds.

`main` turns an event into an answer. `claude` and `json_text` only add the hook to Claude Code's
settings and remove it.
"""
