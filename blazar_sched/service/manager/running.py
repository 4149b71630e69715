# SPDX-License-Identifier: Apache-2.0
"""What a part of the service does in a manager."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses

from blazar_sched.service import loop
from blazar_sched.service.metrics import Metric


@dataclasses.dataclass(frozen=True, slots=True)
class Running:
    """A part that runs in a manager.

    :param answers: the answers to the calls of the part, by call
    :param threads: what is started and stopped with the manager
    :param gauges: what returns the values of a metric, by labels
    """

    answers: Mapping[str, Callable[..., object]] = dataclasses.field(
        default_factory=dict
    )
    threads: tuple[loop.Threads, ...] = ()
    gauges: Mapping[Metric, Callable[[], Mapping[tuple[str, ...], float]]] = (
        dataclasses.field(default_factory=dict)
    )
