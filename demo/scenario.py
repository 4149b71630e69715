# SPDX-License-Identifier: Apache-2.0
"""The scenario of the demonstration, and its expected results.

Every request goes through the real REST APIs: that of this service for hosts
and leases, and Nova's for servers. Each chapter records who made which
request, the host of the server, and whether the result is the one that
blazar-sched promises.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import datetime
import time
from typing import Any

from keystoneauth1 import adapter

from blazar_sched.worker import process
from demo import chart
from demo.cloud import Cloud
from demo.cloud import host_of
from demo.cloud import wait_for

ADMIN = 'admin'
ALICE = 'alice'
BOB = 'bob'
RESERVED = 'compute-1'
OTHER = 'compute-2'
HOSTS = (RESERVED, OTHER)

# The minimum seconds from booking to the window, of the window, and between
# the end of a bounded instance and the window.
AHEAD = 12
LENGTH = 10
MARGIN = 3
# The same in multiples of the time that the first boot takes: three servers
# are booted before the window, and three within the window. A lifetime begins
# when nova-scheduler has the request, which is after a part of the boot.
AHEAD_BOOTS = 8
LENGTH_BOOTS = 6
MARGIN_BOOTS = 1.5


@dataclasses.dataclass(slots=True)
class Placement:
    """One boot: the request, its result, and the reason."""

    chapter: str
    who: str
    asked: str
    expected: str | None
    why: str
    host: str | None = None
    start: int = 0
    end: int = 0

    @property
    def held(self) -> bool:
        """Whether the result is as promised; `expected` None is a refusal."""
        return self.host == self.expected


def iso(at: float) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).isoformat()


class Scenario:
    """The scenario, which is run once.

    :param cloud: a running cloud with HOSTS
    :param api: the reservation API, by project
    :param say: shows a line of progress
    :param waiting: shows that there is a wait, while it is entered
    """

    def __init__(
        self, cloud: Cloud, api: Mapping[str, adapter.Adapter],
        say: Callable[[str], None], waiting: Callable[[str], Any],
    ) -> None:
        self.cloud = cloud
        self.api = api
        self.say = say
        self.waiting = waiting
        self.placements: list[Placement] = []
        self.promises: dict[str, bool] = {}
        self.begun = int(time.time())
        self.flavor = cloud.flavor(vcpus=1, memory_mb=512, disk_gb=1)
        self.lease: dict[str, Any] = {}
        self.ahead, self.length, self.margin = AHEAD, LENGTH, MARGIN

    @property
    def opens(self) -> int:
        return self.booked + self.ahead

    @property
    def closes(self) -> int:
        return self.opens + self.length

    def play(self) -> bool:
        """Run the whole scenario; return whether every promise held."""
        self._measure()
        self._register_hosts()
        self._book()
        self._before()
        self._inside()
        self._after()
        return all(self.promises.values())

    def _measure(self) -> None:
        """Choose the window by the time that a boot takes on this machine."""
        began = time.monotonic()
        server = self.cloud.boot(self.flavor)
        taken = time.monotonic() - began
        self.cloud.delete(server)
        self.ahead = max(AHEAD, round(AHEAD_BOOTS * taken))
        self.length = max(LENGTH, round(LENGTH_BOOTS * taken))
        self.margin = max(MARGIN, round(MARGIN_BOOTS * taken))
        self.say(f'a first server is booted in {taken:.1f} s, and deleted')

    def _register_hosts(self) -> None:
        for host in HOSTS:
            answer = self.api[ADMIN].post('/os-hosts', json={'name': host})
            number = answer.json()['host']['id']
            self.say(f'{host} is registered as reservable (host {number})')

    def _book(self) -> None:
        self.booked = int(time.time())
        answer = self.api[ALICE].post(
            '/leases',
            json={
                'name': 'night-run',
                'start_date': iso(self.opens),
                'end_date': iso(self.closes),
                'reservations': [
                    {
                        'resource_type': 'physical:host',
                        'min': 1,
                        'max': 1,
                        'hypervisor_properties': '',
                        'resource_properties': (
                            f'["==", "$hypervisor_hostname", "{RESERVED}"]'
                        ),
                    }
                ],
            },
        )
        self.lease = answer.json()['lease']
        self.reservation = self.lease['reservations'][0]['id']
        self.say(
            f'{ALICE} books {RESERVED} whole, for {self.length} s, '
            f'{self.ahead} s from now (lease {self.lease["status"]})'
        )
        wait_for('the lease in the scheduler', self._known_to_the_scheduler)

    def _known_to_the_scheduler(self) -> bool:
        replica, _ = process.current()
        return (
            replica is not None and self.reservation in replica.reservations
        )

    def _before(self) -> None:
        lives = self.opens - self.margin - int(time.time())
        first = self._boot(
            'a', BOB, f'lives {lives} s', RESERVED,
            f'it ends {self.margin} s before the window opens, and fills '
            'the gap',
            hints={'lifetime': f'{lives}s'},
        )
        self.promises['a'] = first.held
        first.end = self.opens - self.margin
        second = self._boot(
            'b', BOB, 'says no end', OTHER,
            f'it may still be there when the window of {RESERVED} opens',
        )
        third = self._boot(
            'b', BOB, f'says no end, wants {RESERVED}', None,
            'the same, and it will go nowhere else', on=RESERVED,
        )
        self.promises['b'] = second.held and third.held

    def _inside(self) -> None:
        self._wait_for_status('ACTIVE', self.opens, 'the window to open')
        bounded = f'lives {self.length // 2} s'
        refused = self._boot(
            'c', BOB, f"brings {ALICE}'s reservation", None,
            'the reservation is of another project',
            hints={'reservation': self.reservation},
        )
        shut = self._boot(
            'c', BOB, f'{bounded}, wants {RESERVED}', None,
            "the host is another project's for the whole window",
            hints={'lifetime': f'{self.length // 2}s'}, on=RESERVED,
        )
        owner = self._boot(
            'c', ALICE, 'brings the reservation', RESERVED,
            'the reservation is hers and its window is open',
            hints={'reservation': self.reservation},
        )
        owner.end = self.closes
        self.promises['c'] = refused.held and shut.held and owner.held

    def _after(self) -> None:
        self._wait_for_status('TERMINATED', self.closes, 'the window to close')
        left = [
            server for server in self.cloud.servers()
            if server['tenant_id'] == ALICE
        ]
        self.say(f"{ALICE}'s servers left: {len(left)}")
        last = self._boot(
            'd', BOB, f'says no end, wants {RESERVED}', RESERVED,
            'no window ahead: the host is open to all', on=RESERVED,
        )
        self.promises['d'] = last.held and not left

    def _boot(
        self, chapter: str, who: str, asked: str, expected: str | None,
        why: str, hints: Mapping[str, str] | None = None,
        on: str | None = None,
    ) -> Placement:
        wanted = {} if on is None else {'host': on}
        note = Placement(chapter, who, asked, expected, why)
        note.start = int(time.time())
        server = self.cloud.boot(self.flavor, hints, project_id=who, **wanted)
        if server['status'] == 'ACTIVE':
            note.host = host_of(server)
        self.placements.append(note)
        where = f'is on {note.host}' if note.host else 'is refused'
        mark = 'as promised' if note.held else 'NOT as promised'
        self.say(f'({chapter}) {who}, {asked}: {where}, {mark}: {why}')
        return note

    def _wait_for_status(self, status: str, at: int, what: str) -> None:
        with self.waiting(f'waiting for {what}'):
            time.sleep(max(0, at - time.time()))
            wait_for(what, lambda: self._status() == status)
        late = max(0.0, time.time() - at)
        self.say(f'the lease is {status}, {late:.1f} s after its time')

    def _status(self) -> str:
        answer = self.api[ALICE].get(f'/leases/{self.lease["id"]}')
        status: str = answer.json()['lease']['status']
        return status

    def clear(self) -> None:
        """Delete the remaining servers, and the lease that is over.

        Hosts can be booked, and the guides can use the name of the lease.
        """
        self.cloud.delete(*self.cloud.servers())
        self.api[ALICE].delete(f'/leases/{self.lease["id"]}')
        self.say('all servers are deleted: both hosts can be booked')

    def chart(self, width: int) -> Any:
        """Return a chart of the holders of each host during the scenario."""
        # Leaves some room for the label of the newest bar.
        end = int(time.time()) + 10
        bars = [
            chart.Bar(
                RESERVED, f'leased to {ALICE}', self.opens, self.closes,
                'black on yellow',
            )
        ]
        styles = {ALICE: 'black on cyan', BOB: 'black on green'}
        bars += [
            chart.Bar(
                note.host, f'{note.who} ({note.chapter})', note.start,
                note.end or end, styles[note.who],
            )
            for note in self.placements
            if note.host
        ]
        return chart.draw(HOSTS, bars, self.begun, end, width)
