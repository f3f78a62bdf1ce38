"""The engine of checks: runs commands, scripts and file checks, and keeps the evidence.

`engine` runs a list of checks, `processes` runs one program with its limits, `files` looks at
files, `verification` makes the record and writes the evidence. docs/checks.md.
"""
