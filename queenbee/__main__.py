"""`python -m queenbee`: the command, where the folder of `queen` is not on the path.

Python has put the working directory first on its path, unless it was started with `-P`: a `json.py`
in the repository must not be taken for the library. ADR 0016.
"""

import os
import sys

if not sys.flags.safe_path:
    here: str = os.path.realpath(os.curdir)
    sys.path[:] = [each for each in sys.path if os.path.realpath(each or os.curdir) != here]

from queenbee.cli.main import main

if __name__ == "__main__":
    main()
