# SPDX-License-Identifier: Apache-2.0
from builtins import list as List
from collections.abc import Mapping

from novaclient.base import Resource

class Flavor(Resource):
    name: str
    vcpus: int
    ram: int
    disk: int
    swap: int
    extra_specs: dict[str, str]
    @property
    def ephemeral(self) -> int: ...
    @property
    def is_public(self) -> bool: ...
    def set_keys(self, metadata: Mapping[str, str]) -> object: ...

class FlavorManager:
    resource_class: type[Flavor]
    def list(
        self, *, is_public: bool | None = True, marker: str | None = None
    ) -> List[Flavor]: ...
    def get(self, flavor: str) -> Flavor: ...
    def create(
        self,
        name: str,
        ram: int,
        vcpus: int,
        disk: int,
        flavorid: str,
        ephemeral: int,
        swap: int,
        *,
        is_public: bool,
    ) -> Flavor: ...
    def delete(self, flavor: str) -> object: ...
