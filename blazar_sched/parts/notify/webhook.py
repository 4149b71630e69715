# SPDX-License-Identifier: Apache-2.0
"""A webhook: the URL to which the notifications of a project are posted."""

import base64
import dataclasses
import hashlib
import hmac
import secrets

# The most webhooks of a project, and the most characters of a URL.
MAX_WEBHOOKS = 5
MAX_URL = 2048
# The beginning of a URL that is the address of a person.
MAILTO = 'mailto:'
# The seconds between two messages to a person, on average, and the most
# messages in a row.
MAIL_PAUSE = 60
MAX_MAILS = 10
# The most notifications that wait for a webhook, and the most bytes of those
# that wait for the webhooks of a project. Where half as much waits, an update
# of a lease takes the place of the update that waits.
MAX_WAITING = 10_000
MAX_BYTES = 16 * 2**20
# The longest pause between two tries, also of a receiver that answers, and for
# how long tries may fail, in seconds.
MAX_PAUSE = 3600
MAX_PAUSE_OF_REFUSED = 60
MAX_FAILING = 86400
MAX_ERROR = 255

# Why a webhook is disabled: the receiver has answered 410; it has failed for
# too long; too many notifications wait for it.
GONE = 'gone'
FAILING = 'failing'
FULL = 'full'
DISABLED = (GONE, FAILING, FULL)

_PREFIX = 'whsec_'


@dataclasses.dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook of a project.

    :param events: the types of the notifications; `lease.*` means all types
        that begin with `lease.`
    :param due_at: when the next notification may be sent; while one manager
        sends notifications, when another manager may do so
    :param failing_since: when the first of the failed tries was, None if the
        last try was successful
    """

    id: str
    project_id: str
    url: str
    events: tuple[str, ...]
    secret: str
    created_at: int
    due_at: int = 0
    failures: int = 0
    failing_since: int | None = None
    error: str | None = None
    disabled: str | None = None

    def wants(self, event_type: str) -> bool:
        return any(matches(each, event_type) for each in self.events)

    @property
    def mail_to(self) -> str | None:
        """The address of a person, None for a URL of a receiver."""
        is_mail = self.url.startswith(MAILTO)
        return self.url.removeprefix(MAILTO) if is_mail else None

    def after(
        self, now: int, sent: int, error: str | None, gone: bool = False,
        most: int = MAX_PAUSE, least: int = 0,
    ) -> 'Webhook':
        """Return the webhook as it is after a turn.

        The pause between two turns that fail doubles each time.

        :param sent: the number of notifications that were sent
        :param error: why a request failed, None if none did
        :param gone: whether the receiver wants no notification any more
        :param most: the longest pause in seconds
        :param least: the seconds for which the receiver wants no request
        """
        if error is None:
            pause = MAIL_PAUSE * sent if self.mail_to else 0
            return dataclasses.replace(
                self, due_at=now + pause, failures=0, failing_since=None,
                error=None,
            )
        since = now if sent else self.failing_since or now
        late = FAILING if now - since >= MAX_FAILING else None
        return dataclasses.replace(
            self,
            due_at=now + max(
                min(2 ** min(self.failures, 12), most), min(least, MAX_PAUSE)
            ),
            failures=self.failures + 1, failing_since=since,
            error=error[:MAX_ERROR], disabled=GONE if gone else late,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Delivery:
    """A notification that waits for a webhook.

    :param commit: the number of the commit that made the notification
    :param position: the position among the notifications of the commit
    :param body: the body of the request, JSON
    :param subject: the id of the lease, lease request or series
    :param refused_at: when the receiver has first refused the notification
    """

    id: str
    webhook_id: str
    commit: int
    position: int
    body: str
    subject: str
    refused_at: int | None = None


def matches(pattern: str, event_type: str) -> bool:
    """Tell whether a type is a pattern, or begins as a pattern with `.*`."""
    return event_type == pattern or (
        pattern.endswith('.*') and event_type.startswith(pattern[:-1])
    )


def new_secret() -> str:
    """Return a random secret, in the form of Standard Webhooks."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def sign(secret: str, id_: str, timestamp: int, body: str) -> str:
    """Return the signature of a request, by Standard Webhooks 1.0.

    :param id_: the header webhook-id
    :param timestamp: the header webhook-timestamp, in epoch seconds
    """
    signed = hmac.digest(
        base64.b64decode(secret.removeprefix(_PREFIX)),
        f'{id_}.{timestamp}.{body}'.encode(), hashlib.sha256,
    )
    return f'v1,{base64.b64encode(signed).decode()}'
