# SPDX-License-Identifier: Apache-2.0
"""Custom resource classes in Placement: the slots of reservations."""

from tests.simulation.cloud import base


class Slots(base.Calls):
    """Resource classes, their totals on hosts, and their consumers.

    :ivar slots: totals by (hostname, resource class)
    :ivar holders: the uuids of the consumers, by the same key
    """

    def __init__(self, *args):
        super().__init__(*args)
        self.classes = set()
        self.slots = {}
        self.holders = {}

    def hold(self, hostname, name, uuid):
        self.holders.setdefault((hostname, name), set()).add(uuid)

    def let_go(self, uuid):
        """Remove the allocation of a server that has left its host."""
        for holders in self.holders.values():
            holders.discard(uuid)

    def used(self, hostname, name):
        return len(self.holders.get((hostname, name), ()))

    def create_child(self, parent, hostname):
        self._call()

    def create_resource_class(self, name):
        self._call(lambda: self.classes.add(name), f'{name} is made')

    def delete_resource_class(self, name):
        self._call(lambda: self.classes.discard(name), f'{name} is deleted')

    def set_inventory(self, parent, hostname, name, total):
        def work():
            self.slots[hostname, name] = total

        self._call(work, f'{total} of {name} on {hostname}')

    def remove_inventory(self, hostname, name):
        if self.used(hostname, name):
            self._call()
            return False
        self._call(
            lambda: self.slots.pop((hostname, name), None),
            f'no {name} on {hostname}',
        )
        return True

    def count_used(self, hostname, name):
        self._call()
        return dict.fromkeys(self.holders.get((hostname, name), ()), 1)

    def cut_inventory(self, hostname, name, total, beside=0):
        left = max(total, self.used(hostname, name) + beside)

        def work():
            held = self.slots.pop((hostname, name), 0)
            if held and left:
                self.slots[hostname, name] = min(left, held)

        self._call(work, f'at most {left} of {name} on {hostname}')
        return left

    def release_inventory(self, hostname, name, only=None):
        def work():
            holders = self.holders.pop((hostname, name), set())
            if only is not None:
                self.holders[hostname, name] = holders - set(only)

        self._call(work, f'nobody uses {name} on {hostname}')
