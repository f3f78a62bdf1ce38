"""Our bytes on disk: where they are, how they are appended, and how they are read back.

`layout` says where everything is, `settings` what is configured; `lock` admits one writer at a
time. `ledger` is the files of one kind of record, `state` their fold in memory and `index` the same
on disk; `questions` is what services may ask of either. `engines` are the places where lines are
kept. `whole_files` are whole files, `files` append-only ones.
"""
