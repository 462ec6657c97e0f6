"""A parser of options with sentences as errors, like every other command's."""

from __future__ import annotations

import argparse
import re
from difflib import get_close_matches
from typing import NoReturn

from factory.errors import ConfigurationError

_LAKE = "-f names the datasets file and --lake the lake, in place of FACTORY_DATASETS and FACTORY_HOME."


class OptionParser(argparse.ArgumentParser):
    """The options of a server; raises ConfigurationError where argparse would print its usage and exit."""

    def __init__(self, command: str, description: str) -> None:
        super().__init__(prog=command, description=description, epilog=_LAKE, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        words = re.findall(r"--[\w-]+", message) if message.startswith("unrecognized") else []
        options = [option for action in self._actions for option in action.option_strings]
        near = get_close_matches(words[0], options, n=1) if words else []
        remedy = f"Did you mean `{near[0]}`? " if near else ""
        raise ConfigurationError(
            f"{message[:1].upper()}{message[1:]}. {remedy}`{self.prog} --help` lists the options."
        )
