# SPDX-License-Identifier: Apache-2.0
"""A notification: what is told to others once a change is committed."""

from collections.abc import Callable
import dataclasses
from typing import Any

Payload = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Notification:
    """A notification of a change in a project.

    :param payload: returns the payload; it is called once the lock on the
        ledger's row is released, unless a part needs it in the commit
    """

    event_type: str
    project_id: str
    payload: Callable[[], Payload]
