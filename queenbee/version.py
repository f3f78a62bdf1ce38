"""The version, in the one place that everything else reads."""

__version__ = "0.3.0"
FORMAT = 1
"""The version of the format: of the lines on disk, of the documents of `--json` and of refusals.
`RELEASING.md` says what changes it.
"""
