"""`python -m sluice.generator`: started by `GeneratorProcess`, reads its orders from standard input."""

import sys

from sluice.generator.process import main

sys.exit(main())
