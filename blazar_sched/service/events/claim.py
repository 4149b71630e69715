# SPDX-License-Identifier: Apache-2.0
"""Claims: which process executes an event, and when a claim is dead.

No two clocks are compared. The claim of another manager is dead when the claim
has stayed unchanged for its whole duration on the monotonic clock of *this*
process, counted from when this process first saw the claim in that state: the
method of Kubernetes' leader election (client-go, tools/leaderelection:
observedRecord, observedTime). A holder stops trusting its own claim a third
earlier, counted from before the holder requested the claim. The holder has
therefore begun its last step before any manager takes the event over, however
wrong its wall clock or the wall clock of the other manager is; and what the
holder still writes to the ledger is refused by the token.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import dataclasses
import threading
import uuid

from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.event import Claim
from blazar_sched.service.bus import rpc
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import Tx

LOG = log.getLogger(__name__)


class ClaimLost(Exception):
    """The claim no longer belongs, or may not belong, to this process."""


@dataclasses.dataclass(eq=False, slots=True)
class HeldClaim:
    """A claim on one event, valid until `until` on the monotonic clock."""

    event_id: str
    claim: Claim
    until: float

    @property
    def token(self) -> str:
        return self.claim.token


class Claims:
    """The claims of this process, and the observed claims of others.

    :param clock: returns the time in epoch seconds, for `Claim.until` only
    :param monotonic: the clock that all durations are measured with
    :param seconds: the time after which a claim that is not renewed is dead
    """

    def __init__(
        self, ledger: Ledger, clock: Callable[[], float],
        monotonic: Callable[[], float], seconds: int,
    ) -> None:
        # Seconds from one renewal to the next.
        self.interval = seconds / 3
        self._ledger = ledger
        self._clock = clock
        self._monotonic = monotonic
        self._seconds = seconds
        self._owner = rpc.process_name()
        self._until = 0
        self._held: dict[str, HeldClaim] = {}
        # By event: the claim of another manager, and when this process first
        # saw the claim in that state.
        self._seen: dict[str, tuple[Claim, float]] = {}
        self._changed = threading.Condition()

    def new(self, event_id: str) -> HeldClaim:
        """Return a claim to be written to the ledger."""
        token = str(uuid.uuid4())
        wanted = Claim(self._owner, token, self._next_until())
        return HeldClaim(event_id, wanted, self._good_until())

    @contextlib.contextmanager
    def holding(self, mine: HeldClaim) -> Iterator[None]:
        """Keep a claim that is in the ledger renewed while in this context."""
        with self._changed:
            self._held[mine.token] = mine
        try:
            yield
        finally:
            with self._changed:
                del self._held[mine.token]
                self._changed.notify_all()

    def check(self, mine: HeldClaim) -> None:
        """Return while no other process can have taken the claim over.

        :raises ClaimLost: once another process may have taken the claim over
        """
        if self._monotonic() >= mine.until:
            raise ClaimLost

    def renew(self) -> None:
        """Renew every held claim for its full duration, in one commit.

        :raises Unavailable: if the ledger cannot be written
        """
        with self._changed:
            held = dict(self._held)
        if not held:
            return
        good_until = self._good_until()
        until = self._next_until()
        kept = self._ledger.write(
            lambda tx: tx.renew_claims(list(held), until)
        )
        for token, mine in held.items():
            mine.until = good_until if token in kept else float('-inf')

    def is_expired(self, event_id: str, claim: Claim) -> bool:
        """Tell whether the owner of a claim has let the claim expire."""
        now = self._monotonic()
        with self._changed:
            if claim.token in self._held:
                return False
            known, since = self._seen.get(event_id, (None, now))
            if known != claim:
                self._seen[event_id] = claim, now
                return False
            return now - since >= self._seconds

    def forget_all_but(self, event_ids: Iterable[str]) -> None:
        """Drop the observed claims of all but the given events."""
        with self._changed:
            self._seen = {
                id_: self._seen[id_] for id_ in event_ids if id_ in self._seen
            }

    def wait_for_none(self, seconds: float) -> None:
        """Return once no claim is held, or after a number of seconds."""
        with self._changed:
            self._changed.wait_for(lambda: not self._held, seconds)

    def release_all(self) -> None:
        """Leave the events of all held claims to the other managers."""
        with self._changed:
            held = list(self._held.values())
        if held:
            self.release(held)

    def release(self, held: Collection[HeldClaim]) -> None:
        """Leave the events of claims to the next manager that claims them."""
        for mine in held:
            mine.until = float('-inf')
        try:
            self._ledger.write(lambda tx: _undo(tx, held))
        except exception.Unavailable as e:
            LOG.warning(
                'Could not release %d claims, waiting for their expiry: %s',
                len(held), e,
            )

    def _good_until(self) -> float:
        return self._monotonic() + self._seconds - self.interval

    def _next_until(self) -> int:
        """Return until when a claim lasts; never the same value twice.

        Other managers treat a change of this value as a sign of life, so the
        value must change even while the clock is set back.
        """
        with self._changed:
            until = int(self._clock()) + self._seconds
            self._until = max(self._until + 1, until)
            return self._until


def _undo(tx: Tx, held: Iterable[HeldClaim]) -> None:
    for mine in held:
        tx.finish_event(mine.event_id, mine.token, states.EVENT_UNDONE)
