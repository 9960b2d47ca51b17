"""`python -m sluice.lab.generator`: started by `GeneratorProcess`, reads its orders from standard input."""

import sys

from sluice.lab.generator.process import main

sys.exit(main())
