# SPDX-License-Identifier: Apache-2.0
"""Nova's objects of a reservation: flavor, aggregate, server group."""

import dataclasses
import uuid

from blazar_sched.service.clients import nova
from tests.simulation.cloud import base


class Names(base.Calls):
    """The flavors of reservations and their access; aggregates; groups.

    :ivar flavors_: the existing flavors, by id
    :ivar projects: the projects with access, by flavor id
    :ivar aggregates: by name
    :ivar server_groups: their ids, by name
    """

    def __init__(self, *args):
        super().__init__(*args)
        self.flavors_ = {}
        self.projects = {}
        self.aggregates = {}
        self.server_groups = {}

    def flavors(self):
        self._call()
        return []

    def create_flavor(self, flavor):
        def work():
            self.flavors_[flavor.id] = flavor
            self.projects.setdefault(flavor.id, set())

        self._call(work, f'flavor {flavor.id} is made')

    def add_flavor_access(self, flavor_id, project_id):
        self._call(
            lambda: self.projects[flavor_id].add(project_id),
            f'flavor {flavor_id} is for {project_id}',
        )

    def remove_flavor_access(self, flavor_id, project_id):
        self._call(
            lambda: self.projects.get(flavor_id, set()).discard(project_id),
            f'flavor {flavor_id} is no longer for {project_id}',
        )

    def delete_flavor(self, flavor_id):
        def work():
            self.flavors_.pop(flavor_id, None)
            self.projects.pop(flavor_id, None)

        self._call(work, f'flavor {flavor_id} is deleted')

    def aggregate(self, name):
        self._call()
        return self.aggregates.get(name)

    def create_aggregate(self, name, metadata, known=None):
        def work():
            known = self.aggregates.get(name) or nova.Aggregate(
                len(self.aggregates) + 1, name, (), {}
            )
            self.aggregates[name] = dataclasses.replace(
                known, metadata={**known.metadata, **metadata}
            )

        self._call(work, f'aggregate {name} is made')
        return self.aggregates[name]

    def set_aggregate_metadata(self, aggregate, metadata):
        def work():
            known = self.aggregates.get(aggregate.name)
            if known is not None:
                both = {**known.metadata, **metadata}
                left = {k: v for k, v in both.items() if v is not None}
                self.aggregates[known.name] = dataclasses.replace(
                    known, metadata=left
                )

        self._call(work)

    def add_to_aggregate(self, aggregate, host):
        self._call(
            lambda: self._set_members(aggregate, lambda h: h | {host}),
            f'{host} is in aggregate {aggregate.name}',
        )

    def remove_from_aggregate(self, aggregate, host):
        self._call(
            lambda: self._set_members(aggregate, lambda h: h - {host}),
            f'{host} is not in aggregate {aggregate.name}',
        )

    def _set_members(self, aggregate, change):
        known = self.aggregates.get(aggregate.name)
        if known is not None:
            hosts = tuple(sorted(change(set(known.hosts))))
            self.aggregates[known.name] = dataclasses.replace(
                known, hosts=hosts
            )

    def delete_aggregate(self, name):
        self._call(
            lambda: self.aggregates.pop(name, None),
            f'aggregate {name} is deleted',
        )

    def create_server_group(self, name, policy):
        made = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
        self._call(
            lambda: self.server_groups.setdefault(name, made),
            f'server group {name} is made',
        )
        return made

    def delete_server_group(self, name):
        self._call(
            lambda: self.server_groups.pop(name, None),
            f'server group {name} is deleted',
        )
