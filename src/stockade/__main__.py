"""``python -m stockade``: the same as the ``stockade`` script."""

from stockade.cli.main import console

console()
