"""Mutation testing: one change to the code at a time, to see whether a test notices.

    make mutants                         the mutants of promises, then a random sample of 150
    make mutants SAMPLE=400 SEED=2       another sample; SAMPLE=all takes many hours
    make mutants FOLDERS='git hook'      of some packages only

The mutants of promises are the rows of `table/`: see `promises`.

mutmut makes those of the sample. It can also run them, all in one process and on code that it
rewrites for that. But then a command that runs as a process would never meet a mutant, and tests
of what a module imports or says would fail on the rewritten code. So here each mutant is a real
edit in a copy of the repository, and the tests that run the changed line are run on it, the quick
ones first.

A mutant of `queenbee/<folder>/` meets the tests of `tests/<folder>/` and no others: a survivor is
something that the tests beside the code do not notice.
"""
