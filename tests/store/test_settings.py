"""Settings are shared through git: what they do not allow is refused, never guessed at."""

from __future__ import annotations

import os

import pytest

from queenbee.errors import InvalidInput, Unreadable
from queenbee.store import settings
from queenbee.store.creating import template


def load(folder, text=None, env=None):
    if text is not None:
        (folder / settings.FILE_NAME).write_bytes(
            text if isinstance(text, bytes) else text.encode()
        )
    return settings.load(str(folder), env or {})


def test_without_a_file_the_defaults_hold(tmp_path):
    found = load(tmp_path)
    assert (found.state, found.droids, found.issues, found.durability) == (
        "git",
        "auto",
        "auto",
        "synced",
    )
    assert (found.ttl_s, found.lock_timeout_s, found.unknown) == (7_200, 30.0, ())


def test_the_template_says_what_the_defaults_are(tmp_path):
    uncommented = "".join(
        line.removeprefix("# ").partition(" # ")[0] + "\n"
        for line in template().splitlines()
        if " = " in line or line.startswith("# [")
    )
    spelled, plain = load(tmp_path, uncommented), settings.Settings()
    assert all(
        getattr(spelled, each.attribute) == getattr(plain, each.attribute)
        for each in settings.SETTINGS
    )


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ('state = "beads"', "state", "beads"),
        ('droids = "strict"', "droids", "strict"),
        ('issues = "off"', "issues", "off"),
        ('durability = "buffered"', "durability", "buffered"),
        ('ttl = "1h30m"', "ttl_s", 5_400),
        ('lock_timeout = "0s"', "lock_timeout_s", 0),
        ("gate_results = 0", "gate_results", 0),
        ('rotate_at = "512KiB"', "rotate_at_bytes", 512 * 1024),
        ('rotate_at = "64MiB"', "rotate_at_bytes", 64 * 1024 * 1024),
        ('rotate_at = "off"', "rotate_at_bytes", 0),
        ('archive_after = "0s"', "archive_after_s", 0),
        ('\ufeffttl = "1h"\r\n', "ttl_s", 3_600),
    ],
)
def test_what_the_file_says_holds(tmp_path, text, name, value):
    assert getattr(load(tmp_path, text), name) == value


@pytest.mark.parametrize(
    "text",
    [
        'state = "elsewhere"',
        "state = 7",
        'droids = ["auto"]',
        'ttl = "soon"',
        "ttl = 7200",
        'ttl = "0s"',
        'ttl = "31d"',
        'lock_timeout = "2h"',
        "rotate_at = 4",
        'rotate_at = "4MB"',
        'rotate_at = "0KiB"',
        'rotate_at = "65MiB"',
        'rotate_at = "-1MiB"',
        'archive_after = "11y"',
        "gate_results = true",
        "gate_results = 10001",
        "close_on_complete = 1",
        'land.union = "NEWS.md"',
        'land.union = ["a\\nb"]',
        "gate_results = -1",
    ],
)
def test_what_no_setting_allows_is_refused_and_named(tmp_path, text):
    with pytest.raises(Unreadable) as refused:
        load(tmp_path, text)
    assert settings.FILE_NAME in refused.value.message
    assert text.partition(" =")[0] in refused.value.hint


@pytest.mark.parametrize(
    "text", ["state = ", "<<<<<<< HEAD\n", 'ttl = "1h"\nttl = "2h"', b'ttl = "\xff"']
)
def test_a_file_that_is_not_toml_is_refused(tmp_path, text):
    with pytest.raises(Unreadable, match=r"queen\.toml"):
        load(tmp_path, text)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_settings_that_are_not_a_file_are_refused(tmp_path, make):
    make(tmp_path / settings.FILE_NAME)
    with pytest.raises(Unreadable, match=r"queen\.toml"):
        load(tmp_path)


def test_settings_of_a_later_version_are_kept_and_named(tmp_path):
    assert load(tmp_path, 'zeal = 3\n[later]\nx = 1\nttl = "9h"').unknown == ("later", "zeal")


@pytest.fixture
def zeal(monkeypatch):
    """A table of settings with one in it."""
    found = settings.Setting("bees.zeal", settings._choice("high", "low"), "high", "how much")
    monkeypatch.setattr(settings, "SETTINGS", (*settings.SETTINGS, found))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (None, "high"),
        ('[bees]\nzeal = "low"', "low"),
        ('bees.zeal = "low"', "low"),
        ("[bees]\n", "high"),
        ('zeal = "low"', "high"),
    ],
)
def test_a_setting_may_be_in_a_table(tmp_path, zeal, text, value):
    assert load(tmp_path, text).bees_zeal == value


@pytest.mark.parametrize("text", ["bees = 3", '[bees]\nzeal = "some"', "[[bees]]\nzeal = 1"])
def test_a_wrong_value_in_a_table_is_refused_and_named(tmp_path, zeal, text):
    with pytest.raises(Unreadable, match="bees") as refused:
        load(tmp_path, text)
    assert "bees" in refused.value.hint


def test_what_is_unknown_in_a_table_is_kept_and_named(tmp_path, zeal):
    assert load(tmp_path, "[bees]\nnumber = 3").unknown == ("bees.number",)


def test_the_environment_overrides_durability(tmp_path):
    env = {"QUEEN_DURABILITY": "buffered"}
    assert load(tmp_path, 'durability = "synced"', env).durability == "buffered"


def test_an_environment_that_says_something_else_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="QUEEN_DURABILITY"):
        load(tmp_path, None, {"QUEEN_DURABILITY": "maybe"})
