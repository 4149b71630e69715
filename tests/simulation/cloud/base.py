# SPDX-License-Identifier: Apache-2.0
"""The base class of calls to Nova and Placement, with random failures."""

from blazar_sched.domain import exception


class Calls:
    """The calls of the service to Nova and Placement.

    :param luck: decides which calls fail
    :param clock: returns the true time
    :param tell: called with each change
    """

    def __init__(self, luck, clock, tell):
        self.trouble = 0.0
        # The time until which every call fails.
        self.away_until = 0
        self._luck = luck
        self._clock = clock
        self._tell = tell

    @property
    def is_away(self):
        return self._clock() < self.away_until

    def _call(self, work=lambda: None, what=None):
        """Make a call; fail now and then, before or after the call."""
        if self.is_away:
            raise exception.Unavailable('nova refuses', refused=True)
        draw = self._luck.random() if self.trouble else 1.0
        if draw < self.trouble / 2:
            raise exception.Unavailable('nova answered 500')
        work()
        if what:
            self._tell(what)
        if draw < self.trouble:
            raise exception.Unavailable('nova did not answer in time')
