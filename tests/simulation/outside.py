# SPDX-License-Identifier: Apache-2.0
"""Receivers of announcements outside OpenStack: mail server and webhook."""

import contextlib
import dataclasses
import json
from unittest import mock

from blazar_sched.domain import exception
from blazar_sched.parts.notify import mail
from blazar_sched.service.clients import receiver

EMAIL, WEBHOOK = 'email', 'webhook'


@dataclasses.dataclass(frozen=True)
class Told:
    """A message; `about` is what the message says of the end, `key` its key.
    """

    at: int
    how: str
    lease_id: str
    key: str
    about: str


class Keystone:
    """A Keystone in which every user has an address, and no user has a trust.
    """

    def create_trust(self, *args):
        return None

    def delete_trust(self, *args):
        pass

    def email(self, user_id):
        return f'{user_id}@example.org'

    def adapter_for(self, trust_id, service_type):
        return None

    def limits(self):
        return {}


class Outside:
    """A receiver of messages that fails now and then.

    :ivar told: the messages about ends of leases
    """

    def __init__(self, luck, clock, tell):
        self.trouble = 0.0
        self.told = []
        self._luck = luck
        self._clock = clock
        self._tell = tell

    @contextlib.contextmanager
    def reached(self):
        """Have the actions of this process send to this receiver."""
        with (
            mock.patch.object(mail, '_send', lambda _, sent: self.mail(sent)),
            mock.patch.object(receiver, 'post', self._post),
        ):
            yield

    def mail(self, message):
        key = message['Message-ID']
        lease_id = key.strip('<>').split('.')[0]
        end = message['Subject'].rpartition(' ends at ')[2]
        self._take(EMAIL, lease_id, key, end)

    def _post(self, url, headers, body, *args, **kwargs):
        body, key = json.loads(body), headers['Idempotency-Key']
        self._take(WEBHOOK, body['lease_id'], key, body['end_date'])
        return receiver.Answer(204)

    def _take(self, how, lease_id, key, about):
        with self._reached_at_times():
            self.told.append(
                Told(int(self._clock()), how, lease_id, key, about)
            )
            self._tell(f'told by {how} that lease {lease_id} ends at {about}')

    @contextlib.contextmanager
    def _reached_at_times(self):
        """Fail before or after the message is received, now and then."""
        draw = self._luck.random() if self.trouble else 1.0
        if draw < self.trouble / 2:
            raise exception.Unavailable('nobody is there')
        yield
        if draw < self.trouble:
            raise exception.Unavailable('no answer')
