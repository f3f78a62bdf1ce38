"""Files in which each dotted number is a version or a date: those that say what a project is, and
what it depends on.
"""

from __future__ import annotations

import re

_MANIFEST = re.compile(
    r"(?:^|/)(?:pyproject\.toml|setup\.(?:cfg|py)|tox\.ini|\.pre-commit-config\.yaml|citation\.cff"
    r"|[^/]*(?:requirements|constraints)[^/]*\.(?:txt|in)|requirements/[^/]+\.(?:txt|in)"
    r"|docs?/(?:[^/]+/)*conf\.py"
    r"|package\.json|composer\.json|cargo\.toml|go\.mod|gemfile|[^/]+\.gemspec|pom\.xml"
    r"|build\.gradle(?:\.kts)?|[^/]+\.csproj|pubspec\.yaml|chart\.yaml|version(?:\.txt)?)$",
    re.IGNORECASE,
)


def is_manifest(path: str) -> bool:
    """Returns whether a file is a manifest, by its name."""
    return _MANIFEST.search(path) is not None
