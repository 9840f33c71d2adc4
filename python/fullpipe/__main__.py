"""`python -m fullpipe` is the command `fullpipe`."""

from fullpipe.cli import main

main()
