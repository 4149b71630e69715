# SPDX-License-Identifier: Apache-2.0
"""Webhooks: what is told to the receivers that projects name.

A commit writes its notifications for the webhooks of their projects: see
`models.in_commit`. They are sent in the order of the commits, one request at a
time for each webhook, by the manager that has claimed the webhook. A refused
notification holds up the notifications of its own lease, lease request or
series. A manager that is killed leaves a claim that expires: another manager
goes on then, and repeats what the first has sent since its claim.
"""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
from email import headerregistry
from email import utils
import functools
import ipaddress
import json
from typing import Any
import uuid

import futurist
from oslo_log import log

from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain import plural
from blazar_sched.parts.notify import address
from blazar_sched.parts.notify import mail
from blazar_sched.parts.notify import models
from blazar_sched.parts.notify import webhook
from blazar_sched.parts.notify.calls import WEBHOOKS
from blazar_sched.parts.notify.conf import EMAIL
from blazar_sched.parts.notify.conf import WEBHOOK
from blazar_sched.parts.notify.exception import MaxWebhooks
from blazar_sched.parts.notify.webhook import Delivery
from blazar_sched.parts.notify.webhook import Webhook
from blazar_sched.service import faults
from blazar_sched.service import loop
from blazar_sched.service.bus import notifier
from blazar_sched.service.clients import receiver
from blazar_sched.service.ledger.tx import Tx
from blazar_sched.service.manager import paging
from blazar_sched.service.manager.manager import Manager
from blazar_sched.service.manager.running import Running

LOG = log.getLogger(__name__)

# The number of webhooks to which one manager sends at a time, each of another
# project, and the number that a step looks at.
WORKERS = 16
MAX_DUE = 1000
# For how many seconds, and how many notifications, a webhook keeps a worker.
TURN = 20
MAX_SENT = 500
# After so many refused notifications a turn ends.
MAX_REFUSED = 10
_GONE = 410
_BUSY = (429, 503)
# A turn also ends at these statuses of a response, and without a response:
# they concern the receiver, and not one notification.
_OF_ALL = (None, _GONE, *_BUSY)
# The seconds for which a name server may be slow.
SLACK = 60

# What a message to a person says in its subject; otherwise the type.
_SAID = {
    notifier.LEASE_CREATE: 'the lease was created',
    notifier.LEASE_UPDATE: 'the lease was changed or moved',
    notifier.LEASE_DELETE: 'the lease was deleted',
    f'{notifier.LEASE_EVENT}{event.START_LEASE}': 'the lease has started',
    f'{notifier.LEASE_EVENT}{event.BEFORE_END_LEASE}': 'the lease ends soon',
    f'{notifier.LEASE_EVENT}{event.END_LEASE}': 'the lease has ended',
    notifier.LEASE_DEGRADED: 'the lease is degraded',
    notifier.LEASE_HEALED: 'the lease is not degraded any more',
    notifier.LEASE_AT_RISK: 'the lease is at risk',
    notifier.LEASE_UNUSED: 'the lease is not used in full',
}

_Shown = dict[str, Any]


class Webhooks(loop.Looped):
    """The operations on webhooks, and the loop that sends notifications.

    :raises ValueError: if an allowed network is none
    """

    def __init__(self, manager: Manager) -> None:
        self._all = manager.conf
        self._conf = manager.conf[WEBHOOK]
        self._allowed = [
            ipaddress.ip_network(each) for each in self._conf.allowed_networks
        ]
        self._ledger = manager.ledger
        self._clock = manager.clock
        self._monotonic = manager.monotonic
        self._pool = manager.pool or futurist.ThreadPoolExecutor(WORKERS)
        # The projects to whose webhooks this manager is sending.
        self._busy: set[str] = set()
        self._loop = loop.Loop('webhooks', self.step)

    def create(self, values: Mapping[str, Any]) -> _Shown:
        """Create a webhook; return the webhook with its secret.

        :param values: `project_id`, `url` and `events`
        :raises InvalidInput: naming the field that is wrong
        :raises MaxWebhooks: if the project has too many webhooks
        """
        if values['url'].startswith(webhook.MAILTO):
            self._address(values['url'].removeprefix(webhook.MAILTO))
        else:
            address.check_url(values['url'], self._allowed)
        types = notifier.of_projects(self._all)
        for each in values['events']:
            if not any(webhook.matches(each, t) for t in types):
                raise exception.InvalidInput(
                    f'events: there is no notification {each}', field='events'
                )
        new = Webhook(
            str(uuid.uuid4()), values['project_id'], values['url'],
            tuple(dict.fromkeys(values['events'])), webhook.new_secret(),
            int(self._clock()),
        )

        def work(tx: Tx) -> None:
            there = tx.run(models.list_, new.project_id)
            if len(there) >= webhook.MAX_WEBHOOKS:
                raise MaxWebhooks(
                    'a project may have '
                    f'{plural.counted(webhook.MAX_WEBHOOKS, "webhook")} at '
                    'most',
                    field='url',
                )
            tx.run(models.put, new)

        self._ledger.write(work)
        return dataclasses.asdict(new)

    def list(self, project_id: str | None) -> list[_Shown]:
        """Return the webhooks of a project, or all, by id, without secrets."""
        return list(map(_shown, self._ledger.run(models.list_, project_id)))

    def get(self, webhook_id: str, project_id: str | None) -> _Shown:
        """Return a webhook without its secret.

        :raises WebhookNotFound: if the project has no such webhook
        """
        return _shown(self._ledger.run(models.get, webhook_id, project_id))

    def delete(self, webhook_id: str, project_id: str | None) -> None:
        """Delete a webhook; no request is sent after the current one.

        :raises WebhookNotFound: if the project has no such webhook
        """
        while self._ledger.write(
            lambda tx: tx.run(models.delete, webhook_id, project_id)
        ):
            pass

    def step(self) -> None:
        """Give workers the webhooks that are due, one of each project.

        Notifications that wait for disabled webhooks are deleted.
        """
        for id_ in self._ledger.run(models.disabled_and_waiting):
            self._forget(id_)
        now = int(self._clock())
        claim = now + TURN + int(self._conf.timeout) + SLACK
        for due in self._ledger.run(models.due, now, MAX_DUE):
            if len(self._busy) >= WORKERS:
                break
            if due.project_id in self._busy:
                continue
            claimed = dataclasses.replace(due, due_at=claim)
            if self._change(due, claimed):
                self._busy.add(due.project_id)
                self._pool.submit(self._take_turn, claimed)

    def _forget(self, webhook_id: str) -> None:
        while self._ledger.write(lambda tx: tx.run(models.forget, webhook_id)):
            pass

    def stop(self) -> None:
        """Take no further step, and leave the rest to other managers."""
        super().stop()
        self._pool.shutdown(wait=False)

    def _take_turn(self, claimed: Webhook) -> None:
        try:
            self._send_all(claimed)
        except Exception:
            # Another turn begins when the claim expires.
            LOG.exception('Could not send to webhook %s', claimed.id)
        finally:
            self._busy.discard(claimed.project_id)
            self._loop.wake()

    def _send_all(self, claimed: Webhook) -> None:
        """Send what waits for a webhook, and is not behind a refused one."""
        until = self._monotonic() + TURN
        sent: list[str] = []
        most = webhook.MAX_MAILS if claimed.mail_to else MAX_SENT
        refused: list[Delivery] = []
        last: Delivery | None = None
        error: str | None = None
        status: int | None = 200
        pause = 0
        while (
            status not in _OF_ALL and len(sent) < most
            and len(refused) < MAX_REFUSED and self._monotonic() < until
            and (last := self._ledger.run(
                models.next_delivery, claimed, last, refused
            ))
        ):
            failure, status, pause = self._send(claimed, last)
            error = failure or error
            if failure is None:
                sent.append(last.id)
            elif status not in _OF_ALL:
                refused.append(last)
            faults.point('webhook:sent')
        now = int(self._clock())
        new = claimed.after(
            now, len(sent), error, status == _GONE,
            webhook.MAX_PAUSE if status in _OF_ALL
            else webhook.MAX_PAUSE_OF_REFUSED,
            pause,
        )
        if error is not None:
            LOG.warning(
                'Could not send to webhook %s of project %s: %s%s', claimed.id,
                claimed.project_id, error,
                f'; the webhook is disabled: {new.disabled}'
                if new.disabled else '',
            )
        refused = [
            dataclasses.replace(each, refused_at=each.refused_at or now)
            for each in refused
        ]
        for each in refused:
            if now - (each.refused_at or now) >= webhook.MAX_FAILING:
                LOG.warning(
                    'Webhook %s has refused notification %s for too long',
                    claimed.id, each.id,
                )
                sent.append(each.id)
        self._change(claimed, new, sent, refused)

    def _change(
        self, old: Webhook, new: Webhook, sent: Collection[str] = (),
        refused: Collection[Delivery] = (),
    ) -> bool:
        return self._ledger.write(
            lambda tx: tx.run(models.change, old, new, sent, refused)
        )

    def _send(
        self, claimed: Webhook, delivery: Delivery
    ) -> tuple[str | None, int | None, int]:
        """Send a notification.

        :returns: the error, None if there is none; the status of the response,
            None if there is no response; and the seconds for which a busy
            receiver wants no request
        """
        try:
            if claimed.mail_to is None:
                answer = self._post(claimed, delivery)
            else:
                self._mail(claimed, claimed.mail_to, delivery)
                answer = receiver.Answer(200)
        except (exception.InvalidInput, exception.Unavailable) as e:
            # The project is not told what the receiver, or a name server, has
            # answered: that is the detail.
            LOG.info('Webhook %s: %s', claimed.id, e)
            return str(e.args[0]), None, 0
        if answer.is_ok:
            return None, answer.status, 0
        busy = answer.status in _BUSY
        return (
            f'the receiver has answered {answer.status}', answer.status,
            _pause(answer, int(self._clock())) if busy else 0,
        )

    def _post(self, claimed: Webhook, delivery: Delivery) -> receiver.Answer:
        """Post a notification to a receiver; return the response.

        :raises Unavailable: if the receiver sends no response
        """
        now = int(self._clock())
        headers = {
            'Content-Type': 'application/json',
            'User-Agent': 'blazar-sched',
            'webhook-id': delivery.id,
            'webhook-timestamp': str(now),
            'webhook-signature': webhook.sign(
                claimed.secret, delivery.id, now, delivery.body
            ),
        }
        return receiver.post(
            claimed.url, headers, delivery.body, self._conf.timeout,
            functools.partial(address.is_allowed, allowed=self._allowed),
        )

    def _mail(self, claimed: Webhook, to: str, delivery: Delivery) -> None:
        """Send a notification to a person.

        :raises InvalidInput: if the operator permits the address no longer
        :raises Unavailable: if the mail server does not accept the message
        """
        content = json.loads(delivery.body)
        event_type, data = content['type'], content['data']
        said = _SAID.get(event_type, event_type)
        lines = [
            *(
                f'{key}: {value}' for key, value in data.items()
                if not isinstance(value, list | dict)
            ),
            '',
            f'Project {claimed.project_id} has asked for this message, by the '
            f'webhook {claimed.id}.',
        ]
        mail.send(
            self._all, self._address(to), f'{data["name"]}: {said}', lines,
            delivery.id,
        )

    def _address(self, text: str) -> headerregistry.Address:
        """Return an address to which the operator lets webhooks send.

        :raises InvalidInput: naming `url`
        """
        found = mail.address(text)
        options = self._all[EMAIL]
        if found is None or found.addr_spec != text or not text.isascii():
            raise exception.InvalidInput(
                'url must have one e-mail address after mailto:', field='url'
            )
        if not options.smtp_host or found.domain.lower() not in (
            each.lower() for each in options.allowed_domains
        ):
            raise exception.InvalidInput(
                'url has an e-mail address to which this cloud sends nothing',
                field='url',
            )
        return found


def _shown(found: Webhook) -> _Shown:
    return {**dataclasses.asdict(found), 'secret': None}


def _pause(answer: receiver.Answer, now: int) -> int:
    """Return the seconds for which a receiver wants no request."""
    try:
        if (text := answer.retry_after or '').isdecimal():
            return int(text)
        at = utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return 0
    return max(0, int(at) - now)


def start(manager: Manager) -> Running:
    """Answer the calls for webhooks, and send what waits for webhooks."""
    webhooks = Webhooks(manager)
    return Running({
        'create_webhook': webhooks.create,
        **paging.answers(WEBHOOKS, webhooks),
    }, (webhooks,))
