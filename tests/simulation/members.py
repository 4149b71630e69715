# SPDX-License-Identifier: Apache-2.0
"""The managers' processes, and the calls between processes."""

import json

import oslo_messaging

from blazar_sched.domain import exception
from blazar_sched.parts.series.manager import AllSeries
from blazar_sched.service.manager.manager import Manager
from tests import looped
from tests.simulation import outside
from tests.standins import processor


class Crash(BaseException):
    """The process is killed at this point."""


class Inline:
    """An executor without threads."""

    def submit(self, work, *args):
        work(*args)

    def shutdown(self, wait=True):
        pass


class Member:
    """A manager's process; `manager` is None while the process is dead.

    `skew` is the difference of the process's clock from the true time.
    """

    def __init__(self, world, number):
        self.name = f'manager {number}'
        self.manager = None
        self.skew = 0
        self.paused = False
        self._world = world

    def clock(self):
        return self._world.time + self.skew

    def start(self):
        world = self._world
        self.manager = Manager(
            world.conf, world.cloud, world.cloud, clock=self.clock,
            monotonic=lambda: world.uptime, wait=world.pass_time,
            pool=Inline(), keystone=outside.Keystone(),
            thread_time=processor.ticking(),
        )
        self.manager.ledger._sleep = lambda seconds: None
        series = looped.of(self.manager, AllSeries)
        roll_on = series._roll_on
        series._roll_on = lambda each, now: world.series.roll_on(
            roll_on, each, now
        )
        self.manager.clock.ask(self.manager.ledger.next_event)

    def run(self, work):
        """Return `work(manager)`, or None if the process is killed meanwhile.
        """
        world, before = self._world, self._world.acting
        world.acting = self
        try:
            return work(self.manager)
        except Crash as e:
            # A call to the member may have killed the member already, in the
            # middle of this work.
            if self.manager is not None:
                world.tell(f'{self.name} is killed at {e}')
                self.manager.ledger.close()
                self.manager = None
            return None
        finally:
            world.acting = before

    @property
    def alive(self):
        return self.manager is not None and not self.paused


class Bus:
    """Calls between processes: JSON in both directions, with random losses."""

    def __init__(self, world):
        self._world = world

    def call(self, ctxt, method, **kwargs):
        world = self._world
        members = [m for m in world.members if m.alive]
        if not members or world.strikes(world.trouble):
            raise exception.Unavailable('no manager responded')
        sent = json.loads(json.dumps(kwargs))
        answer = world.luck.choice(members).run(
            lambda manager: (answer_of(manager.endpoint, method, sent),)
        )
        if answer is None or world.strikes(world.trouble):
            raise exception.Unavailable('no manager responded')
        return json.loads(json.dumps(answer[0]))


def answer_of(endpoint, method, kwargs):
    try:
        return getattr(endpoint, method)({}, **kwargs)
    except oslo_messaging.ExpectedException as e:
        raise e.exc_info[1] from None
