"""The command `queen-hook`: agents run it around every edit, so it must end in milliseconds.

`main` turns an event into an answer. `queenbee.agents` adds the hook to the settings of agents.
"""
