"""`python -m lpzero`: the command."""

from lpzero.cli.main import main

main()
