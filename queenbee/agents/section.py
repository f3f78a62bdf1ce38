"""What an agent reads about QueenBee in its files of instructions, and in its skill."""

from __future__ import annotations

from queenbee.services.telling.briefing import section

BEGIN = (
    "<!-- queenbee: begin (made by `queen setup`, which replaces what is between these lines) -->"
)
END = "<!-- queenbee: end -->"
__all__ = ["BEGIN", "END", "MARK", "section", "skill"]

MARK = "<!-- queenbee: made by `queen setup`, which replaces this file -->"


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
