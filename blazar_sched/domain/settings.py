# SPDX-License-Identifier: Apache-2.0
"""The managers' options by which nova-scheduler decides, too.

Only the managers' configuration has the options. A manager tells them to each
worker of nova-scheduler with the changes of the ledger.
"""

import dataclasses
from typing import Any

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain.relocation import Rules


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """How instances outside of reservations may use the reservable hosts.

    The defaults are for a worker to which no manager has told anything, such
    as a manager of an earlier release: what they let in is right under any
    other settings.

    :param unbounded: the rule for instances without an end
    :param unbounded_fixed: the rule for those that cannot be moved, on hosts
        from which others are moved
    :param relocating: whether the managers move instances
    :param rules: the rules of relocation
    """

    unbounded: str = duration.FOREVER
    unbounded_fixed: str = duration.FOREVER
    relocating: bool = False
    rules: Rules = dataclasses.field(default_factory=Rules)

    def encode(self) -> dict[str, Any]:
        """Return the settings in JSON primitives."""
        return dataclasses.asdict(self)


# What a worker uses to which no manager has told anything.
UNTOLD = Settings()


def decode(data: Any) -> Settings:
    """Read what `Settings.encode` returns; unknown fields are ignored.

    :raises ValueError: if a field is missing or wrong
    """
    try:
        rules = data['rules']
        found = Settings(
            data['unbounded'], data['unbounded_fixed'],
            bool(data['relocating']),
            Rules(**{
                each.name: rules[each.name]
                for each in dataclasses.fields(Rules) if each.name in rules
            }),
        )
        duration.parse_unbounded(found.unbounded, 'unbounded')
        duration.parse_fixed(found.unbounded_fixed, 'unbounded_fixed')
    except (KeyError, TypeError, exception.InvalidInput) as e:
        raise ValueError(f'not the settings of a manager: {e}') from e
    return found
