# SPDX-License-Identifier: Apache-2.0
from builtins import list as List
from collections.abc import Mapping

from novaclient.base import Resource

class Hypervisor(Resource):
    hypervisor_hostname: str
    hypervisor_type: str
    hypervisor_version: int
    service: Mapping[str, str]
    state: str
    status: str
    cpu_info: Mapping[str, object] | str | None

class HypervisorManager:
    def list(self, *, marker: str | None = None) -> List[Hypervisor]: ...
    def search(
        self, hypervisor_match: str, *, detailed: bool
    ) -> List[Hypervisor]: ...
    def get(self, hypervisor: str) -> Hypervisor: ...
