"""The whole hive: the services, and what the documents of this layer say of issues. ADR 0008.

This is what `from queenbee import Hive` gives. The edit hook of agents takes the services' own:
it asks nothing of documents, and runs before every edit.
"""

from __future__ import annotations

from functools import cached_property

from queenbee.services import hive
from queenbee.workflows.documents import HiveDocuments


class Hive(hive.Hive):
    """An open hive whose beads count as issues and whose gates hold phases back."""

    @cached_property
    def documents(self) -> HiveDocuments:
        """The beads and gates of this hive."""
        return HiveDocuments(self)
