"""Plans: Markdown with phases and sprints, checked, annotated and imported as issues.

docs/plans.md.
"""
