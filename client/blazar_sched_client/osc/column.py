# SPDX-License-Identifier: Apache-2.0
"""Values of the API in a table: as text for people, as they are for programs.
"""

import textwrap
from typing import Any

from cliff import columns

from blazar_sched_client.osc import times
from blazar_sched_client.osc.times import Zone

# The width of the fields of an object in a table.
_WIDTH = 60


class Column(columns.FormattableColumn[Any]):
    """A value that has another form for people."""

    def __init__(self, value: Any, zone: Zone) -> None:
        super().__init__(value)
        self._zone = zone

    def human_readable(self) -> str:
        return _text(self._value, self._zone)


def column(value: Any, zone: Zone) -> Any:
    """Return a value of the API for cliff's formatters."""
    if isinstance(value, (list, dict)) or (
        isinstance(value, str) and times.is_time(value)
    ):
        return Column(value, zone)
    return value


def _text(value: Any, zone: Zone) -> str:
    if isinstance(value, dict):
        fields = ', '.join(f'{k}={_text(v, zone)}' for k, v in value.items())
        return textwrap.fill(fields, _WIDTH)
    if isinstance(value, list):
        whole = any(isinstance(each, dict) for each in value)
        return ('\n' if whole else ', ').join(
            _text(each, zone) for each in value
        )
    if isinstance(value, str) and times.is_time(value):
        return times.show(value, zone)
    return str(value)
