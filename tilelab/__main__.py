"""``python -m tilelab`` is the ``tilelab`` command."""

import sys

from tilelab.cli import main

if __name__ == "__main__":
    sys.exit(main())
