# SPDX-License-Identifier: Apache-2.0
"""Nova's objects of a reservation: flavor, aggregate, server group."""

from tests.simulation.cloud import base
from tests.standins import clients

# What the trace says about each call, with the call's arguments.
_CALLS = {
    'create_flavor': 'flavor {0.id} is made',
    'add_flavor_access': 'flavor {0} is for {1}',
    'remove_flavor_access': 'flavor {0} is no longer for {1}',
    'create_aggregate': 'aggregate {0} is made',
    'set_aggregate_metadata': '',
    'add_to_aggregate': '{1} is in aggregate {0.name}',
    'remove_from_aggregate': '{1} is not in aggregate {0.name}',
    'delete_aggregate': 'aggregate {0} is deleted',
    'create_server_group': 'server group {0} is made',
    'delete_server_group': 'server group {0} is deleted',
}


class Names(base.Calls):
    """The flavors of reservations and their access; aggregates; groups.

    :ivar known: the stand-in that has them
    """

    def __init__(self, *args):
        super().__init__(*args)
        self.known = clients.Nova()

    @property
    def flavors_(self):
        """The existing flavors, by id."""
        return self.known.made_flavors

    @property
    def projects(self):
        """The projects with access, by flavor id."""
        return {
            id_: {project for flavor, project in self.known.access
                  if flavor == id_}
            for id_ in self.flavors_
        }

    def flavors(self):
        self._call()
        return []

    def aggregate(self, name):
        self._call()
        return self.known.aggregate(name)

    def delete_flavor(self, flavor_id):
        def work():
            self.known.delete_flavor(flavor_id)
            self.known.access = {
                each for each in self.known.access if each[0] != flavor_id
            }

        self._call(work, f'flavor {flavor_id} is deleted')


def _of(name, text):
    def call(self, *args):
        made = []
        self._call(
            lambda: made.append(getattr(self.known, name)(*args)),
            text.format(*args),
        )
        return made[0]

    return call


for _name, _text in _CALLS.items():
    setattr(Names, _name, _of(_name, _text))
