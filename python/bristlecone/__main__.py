"""``python -m bristlecone``."""

import sys

from bristlecone._cli import main

if __name__ == "__main__":
    sys.exit(main())
