"""Public names of a package that are loaded when they are first used (PEP 562)."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # Not typing's: a further edit loads this module.
if TYPE_CHECKING:
    from collections.abc import Mapping


def exports(package: str, modules: Mapping[str, str]) -> None:
    """Gives a package its `__getattr__`, `__dir__` and `__all__`.

    `modules` gives, for each module below the package, the public names that it defines, with
    spaces between them. Importing the package loads none of them.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = f"{package}.{homes[name]}"
        __import__(module)  # `importlib` takes longer to load than this module.
        return getattr(sys.modules[module], name)

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    vars(sys.modules[package]).update(__getattr__=load, __dir__=listed, __all__=sorted(homes))
