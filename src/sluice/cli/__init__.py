"""The command line: parsing and printing only, one file per command."""

from __future__ import annotations

import sys

from typer import Abort
from typer._click.exceptions import ClickException, NoArgsIsHelpError

from sluice.cli.app import app
from sluice.errors import BadInputError, SluiceError

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> None:
    """Run one command; whatever a user can cause ends in one line on stderr and a meaningful exit code."""
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    try:
        return int(app(args=arguments, standalone_mode=False) or 0)
    except NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return EXIT_BAD_INPUT
    except ClickException as error:
        return _say(error.format_message(), EXIT_BAD_INPUT)
    except (Abort, KeyboardInterrupt):
        return _say("interrupted", EXIT_INTERRUPTED)
    except BadInputError as error:
        return _say(str(error), EXIT_BAD_INPUT)
    except SluiceError as error:
        return _say(str(error), EXIT_FAILED)


def _say(message: str, code: int) -> int:
    print("sluice: " + " ".join(message.split()), file=sys.stderr)
    return code
