# SPDX-License-Identifier: Apache-2.0
"""Notes: texts that the members of a project leave for each other.

The part is an example, in four files, which no cloud has: a test plays it.
"""

from typing import Protocol

from blazar_sched.service.bus import calls
from blazar_sched.service.bus.calls import Values

# The most notes of a project.
MAX_NOTES = 100


@calls.declared
class Calls(Protocol):
    """The calls for notes."""

    def create_note(self, *, values: Values) -> Values: ...


NOTES = calls.noun('note', 'notes', 'note_id')
