"""What judges a landing: `judging` finds its checks, and `check_files` what a branch changes of
them.
"""
