# SPDX-License-Identifier: Apache-2.0
from novaclient.v2 import aggregates
from novaclient.v2 import flavor_access
from novaclient.v2 import flavors
from novaclient.v2 import hypervisors
from novaclient.v2 import instance_action
from novaclient.v2 import server_groups
from novaclient.v2 import servers
from novaclient.v2 import services

class Client:
    aggregates: aggregates.AggregateManager
    flavor_access: flavor_access.FlavorAccessManager
    flavors: flavors.FlavorManager
    hypervisors: hypervisors.HypervisorManager
    instance_action: instance_action.InstanceActionManager
    server_groups: server_groups.ServerGroupsManager
    servers: servers.ServerManager
    services: services.ServiceManager
    def __init__(self, version: str, **kwargs: object) -> None: ...
