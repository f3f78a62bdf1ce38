"""Runs real coding agents against a scripted model: what works is in bench/results/clients.md.

make clients                        every client, at the two versions of `known`
make clients CLIENTS=codex,gemini   some of them

model     a model on 127.0.0.1 that plays scripts, in the four protocols that clients speak
wires     those protocols
known     the clients: packages, versions, settings, and how each names its tools
install   npm, below build/clients
world     an empty home, a repository with a hive, and clients that run there
cells     the cells of the table, and what those share who fill them
sessions  what must work: alone, resumed, two at once, with a subagent, in a worktree
trouble   what is missing or broken: trust, the hive, our own settings after a while
queue     two clients of different makers that work off six issues
table     the table, on the screen and in the page
"""
