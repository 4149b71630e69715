# SPDX-License-Identifier: Apache-2.0
"""Thresholds: numbers of free hosts below which the operator is notified.

Every manager compares the thresholds. The manager that first commits a change
notes in the same commit that a notification and a request to the webhook are
due. Each of the two is claimed in a commit before it is sent, and noted as
sent in a commit after: if a manager is killed in between, another manager
sends the notification or the request again, TRY_AGAIN seconds later.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
from typing import Any

from oslo_config import cfg
from oslo_log import log

from blazar_sched.conf import threshold as threshold_conf
from blazar_sched.conf import webhook as webhook_conf
from blazar_sched.domain import exception
from blazar_sched.domain.threshold import Threshold
from blazar_sched.service import faults
from blazar_sched.service import loop
from blazar_sched.service.bus import notifier
from blazar_sched.service.bus import payload
from blazar_sched.service.clients import webhook
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.manager.capacity import Capacity
from blazar_sched.service.metrics import Metrics

LOG = log.getLogger(__name__)

# The seconds between two steps: a step compares the thresholds if the ledger
# has changed. They are also compared each minute, because the start of a lease
# comes nearer while the ledger stays the same.
INTERVAL = 10.0
MINUTE = 60
# The seconds for which a notification or a request that is due is left to the
# manager that has claimed it.
TRY_AGAIN = 60
# The names under which changes that fail to be sent are counted.
_NOTIFICATIONS = 'threshold notifications'
_WEBHOOK = 'threshold webhook'


class Thresholds(loop.Looped):
    """The thresholds of the options, and the loops that compare and send.

    A webhook that hangs delays other requests to the webhook only.

    :param clock: returns the time in epoch seconds
    :ivar free: the number that each threshold was last compared with
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        ledger: Ledger,
        capacity: Capacity,
        notifier_: notifier.Notifier,
        clock: Callable[[], float],
        metrics: Metrics,
    ) -> None:
        self._conf = conf
        self._ledger = ledger
        self._capacity = capacity
        self._notifier = notifier_
        self._clock = clock
        self.free: dict[Threshold, int] = {}
        self._compared: object = None
        self._objects = {
            name: loop.Objects[Threshold](name, metrics)
            for name in ('thresholds', _NOTIFICATIONS, _WEBHOOK)
        }
        self._comparing = loop.Loop('thresholds', self.step, lambda: INTERVAL)
        self._posting = loop.Loop(_WEBHOOK, self.post, lambda: INTERVAL)

    @property
    def loops(self) -> tuple[loop.Loop, ...]:
        return self._comparing, self._posting

    def step(self) -> None:
        """Compare the thresholds, and send notifications of changes."""
        now = int(self._clock())
        configured = threshold_conf.thresholds(self._conf)
        state = self._ledger.version(), now // MINUTE, configured
        if state != self._compared:
            self._compare(now)
            self._compared = state
        self._send(
            _NOTIFICATIONS, 'notify_at', TRY_AGAIN, self._notifier.threshold
        )

    def post(self) -> None:
        """Send changes to the webhook.

        :raises Unavailable: if the webhook has not accepted a change
        """
        url = self._conf[webhook_conf.GROUP].capacity_url

        def send(threshold: Threshold) -> None:
            if url:
                webhook.post(
                    self._conf, url,
                    {
                        'event_type': notifier.threshold_event(threshold),
                        'payload': payload.threshold(threshold),
                    },
                    f'{threshold.id}.{threshold.since}',
                )

        timeout = int(self._conf[webhook_conf.GROUP].timeout)
        self._send(_WEBHOOK, 'post_at', TRY_AGAIN + timeout, send)

    def _compare(self, now: int) -> None:
        numbers: dict[Threshold, int] = {}

        def compare(old: Threshold) -> None:
            free = numbers[old] = self._count(old)
            low = free < old.below
            # `since` identifies the change for receivers, so two changes in
            # one second have different times.
            if low != old.low and self._change(old, {
                'low': low, 'since': max(now, old.since + 1), 'free': free,
                'notify_at': now, 'post_at': now,
            }):
                LOG.info(
                    'Threshold %s: %d are free, the threshold is %d',
                    old.name, free, old.below,
                )
                faults.point('threshold:changed')
                self._posting.wake()

        try:
            self._each('thresholds', compare)
        finally:
            self.free = numbers

    def _send(
        self,
        name: str,
        when: str,
        seconds: int,
        send: Callable[[Threshold], None],
    ) -> None:
        """Send the changes that are due, each by one manager at a time.

        :param name: the name of the changes that are sent
        :param when: the field with the time at which a change is due
        :param seconds: how long other managers wait for this manager
        :raises Unavailable: if a change could not be sent
        """

        def send_due(each: Threshold) -> None:
            now = int(self._clock())
            due = getattr(each, when)
            if due is None or due > now:
                return
            claim: dict[str, Any] = {when: now + seconds}
            if not self._change(each, claim):
                return
            send(each)
            faults.point('threshold:sent')
            self._change(dataclasses.replace(each, **claim), {when: None})

        self._each(name, send_due)

    def _each(self, name: str, work: Callable[[Threshold], object]) -> None:
        self._objects[name].each(
            ((each.id, each) for each in self._present()), work, self._clock()
        )

    def _present(self) -> list[Threshold]:
        """Return the thresholds of the options as they are now."""
        crossed = {each.id: each for each in self._ledger.thresholds()}
        return [
            crossed.get(each.id, each)
            for each in threshold_conf.thresholds(self._conf)
        ]

    def _change(self, old: Threshold, values: Mapping[str, Any]) -> bool:
        """Change a threshold, unless another manager has done so."""
        return self._ledger.write(
            lambda tx: tx.change_threshold(old, values)
        )

    def _count(self, threshold: Threshold) -> int:
        """Return the present number of a threshold.

        Instances of a flavor that is gone have no room.
        """
        try:
            return self._capacity.count(
                threshold.project_id, threshold.within,
                threshold.resource_properties, threshold.flavor_id,
            )
        except exception.InvalidInput as e:
            if e.field != 'flavor_id':
                raise
            return 0
