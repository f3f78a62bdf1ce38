"""Branches that are checked together: `batch` merges them, `pace` says how many, and `trial` finds
those that pass. `checked` runs the check, also side by side; `records` adds what the hive has
recorded; `promised` says whose work a commit holds.
"""
