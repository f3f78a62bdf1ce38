"""Packages name what is public, and load it only when it is used."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

PACKAGES = [
    "queenbee", "queenbee.checks", "queenbee.documents", "queenbee.documents.gates",
    "queenbee.documents.ralph", "queenbee.workflows",
]  # fmt: skip
"""Those that a hot command imports a module of; the others import what they name."""


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_can_be_imported_and_is_listed(name: str) -> None:
    package = import_module(name)
    assert package.__all__
    for each in package.__all__:
        assert getattr(package, each) is not None
        assert each in dir(package)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_name_that_is_not_public_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        _ = import_module(name).nothing


@pytest.mark.parametrize("name", PACKAGES)
def test_importing_a_package_loads_no_module_of_it(name: str) -> None:
    program = f"import sys; import {name}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = [each for each in done.stdout.split() if each.startswith("queenbee")]
    parents = {name.rsplit(".", count)[0] for count in range(name.count(".") + 1)}
    assert set(loaded) == {"queenbee._lazy", *parents}
