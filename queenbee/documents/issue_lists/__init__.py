"""Lists of issues from elsewhere: read, understood, and made into rows of the tracker.

`sources` is the table of what each source calls things; `reading`, `boards` and `texts` make
entries of bytes, `listed` and `values` understand them, `list_import` makes rows of them, and
`issue_table` writes a table of our own.
"""
