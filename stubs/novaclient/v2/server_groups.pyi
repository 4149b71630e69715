# SPDX-License-Identifier: Apache-2.0
from builtins import list as List

from novaclient.base import Resource

class ServerGroup(Resource):
    name: str
    policy: str

class ServerGroupsManager:
    def list(
        self, all_projects: bool = False, *, offset: int
    ) -> List[ServerGroup]: ...
    def create(self, name: str, policy: str) -> ServerGroup: ...
    def delete(self, id: str) -> object: ...
