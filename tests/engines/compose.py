"""A compose file's services as processes of this machine, in the order and under the conditions it names.

What a container gives is replaced by what one machine has: each service's ports become free ones, its name
becomes 127.0.0.1, and the volume of the platform becomes a folder. Images that are not ours are stood in for
by the same servers from their packages. Commands, environments, health checks and conditions are the file's.
"""

from __future__ import annotations

import re


def interpolated(text: str, given: dict[str, str]) -> str:
    """The text of a compose file with `${NAME:-default}` replaced."""
    return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: given.get(found[1], found[2]), text)
