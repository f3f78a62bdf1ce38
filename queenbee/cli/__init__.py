"""The command `queen`: parses, calls the layers below, and prints. It decides nothing.

`main` is the entry point; `app` makes commands of functions; `terminal`, `rendering`, `progress`
and `options` serve all of them; `exits` has the exit statuses; `commands` has one module per noun.
"""
