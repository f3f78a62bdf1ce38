"""Phase gates: rules that must pass before the next phase begins. docs/gates.md.

`gate` has the document and its judgement, `store` its files, `rules` and `rule_fields` the four
types of rules, `run` runs them, and `phases` says which gates hold an issue back.
"""
