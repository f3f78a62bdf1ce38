"""What an agent reads about QueenBee in its files of instructions, and in its skill."""

from __future__ import annotations

BEGIN = (
    "<!-- queenbee: begin (made by `queen setup`, which replaces what is between these lines) -->"
)
END = "<!-- queenbee: end -->"
MARK = "<!-- queenbee: made by `queen setup`, which replaces this file -->"


def section() -> str:
    """Returns the section for AGENTS.md, CLAUDE.md and GEMINI.md."""
    return """\
## QueenBee

Several agents share this repository. `queen` records who works on what.

- `queen next` gives you an issue, and all that you need to begin.
- Commit your work, then run `queen land --check 'TESTS' --next`: it merges, tests, completes the
  issue, and gives you the next one. Without git work, use `queen complete ISSUE --next`.
- `queen reserve FILE` before you change what nobody else may touch meanwhile.
- `queen msg read` shows your mail; `queen msg send NAME BODY` answers it.

If `queen` or an edit is refused, read why: the message names the next command.
"""


def skill() -> str:
    """Returns the skill: SKILL.md, as agents read it."""
    return f"""\
---
name: queenbee
description: >-
  Coordinates coding agents that share this git repository. Use it to take an issue, to reserve
  files, to write to other agents, to land finished work, and when `queen` or an edit is refused.
---

{MARK}

{section()}
More: `queen --help`, and `queen COMMAND --help` with an example for each command.
"""
