"""Conflicts of a merge as texts: `marked` reads them, and `rules` join those that need nobody."""
