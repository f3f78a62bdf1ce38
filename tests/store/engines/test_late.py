"""Where psycopg is missing, a command says so, though it would not have imported it."""

from __future__ import annotations

import sys
from pathlib import Path

import postgres_server
import pytest

from queenbee import Hive
from queenbee.errors import StoreError
from queenbee.store.engines.postgres import late


def test_a_hive_in_a_database_needs_psycopg(
    repo: Path, beads: Path, server: postgres_server.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres_server.use(beads, server)
    for name in [name for name in sys.modules if f"{name}.".startswith("psycopg.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if "engines.postgres." in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(late.PathFinder, "find_spec", lambda *_: None)
    with pytest.raises(StoreError, match="psycopg cannot be imported") as refused:
        Hive.open(repo, droid="ui", env=postgres_server.environment())
    assert "queenbee-hive[postgres]" in str(refused.value.hint)
