"""Fetch Spark's jars, make its home and the archive of its classes: `python -m factory.spark [--all]`."""

import sys

from factory.errors import MachineError
from factory.settings import Settings
from factory.spark.classes import require_archive
from factory.spark.home import require_home
from factory.spark.jars import ALL_JARS, coordinates
from factory.spark.session import fetch_jars

if __name__ == "__main__":
    try:
        fetch_jars(Settings(), ALL_JARS if sys.argv[1:] == ["--all"] else coordinates(Settings()))
        require_home(Settings())
        require_archive(Settings())
    except MachineError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
