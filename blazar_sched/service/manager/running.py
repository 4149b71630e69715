# SPDX-License-Identifier: Apache-2.0
"""What a part of the service does in a manager."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses

from blazar_sched.service import loop


@dataclasses.dataclass(frozen=True, slots=True)
class Running:
    """A part that runs in a manager.

    :param answers: the answers to the calls of the part, by call
    :param threads: what is started and stopped with the manager
    """

    answers: Mapping[str, Callable[..., object]] = dataclasses.field(
        default_factory=dict
    )
    threads: tuple[loop.Threads, ...] = ()
