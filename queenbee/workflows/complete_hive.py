"""The complete hive: the services, and what beads and gates say about issues. ADR 0008.

`queenbee.library.hive.Hive` adds to this class; the edit hook uses the services' own hive.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from queenbee.errors import QueenError
from queenbee.services.hive import Services

if TYPE_CHECKING:
    from queenbee.workflows.document_answers import HiveDocuments


class Hive(Services):
    """An open hive whose beads count as issues and whose gates hold phases back."""

    @cached_property
    def documents(self) -> HiveDocuments:
        """The beads and gates of this hive."""
        from queenbee.workflows.document_answers import HiveDocuments  # noqa: PLC0415 - start-up

        return HiveDocuments(self)

    def notes(self, *, mail: bool = False) -> list[str]:
        """Returns notices for the actor, each of them once; with `mail`, also who has written."""
        from queenbee.services.telling import notices  # noqa: PLC0415 - start-up

        told = notices.notes(self)
        with suppress(QueenError):
            stamp = notices.new_mail(self) if mail else None
            if stamp is not None:
                from queenbee.services.telling import news  # noqa: PLC0415 - start-up

                told += news.of_mail(self, stamp)
        return told
