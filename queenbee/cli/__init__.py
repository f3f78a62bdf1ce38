"""The command `queen`: one file per noun; parse, call, render. Nothing here decides anything."""
