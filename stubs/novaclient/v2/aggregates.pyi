# SPDX-License-Identifier: Apache-2.0
from collections.abc import Mapping

class Aggregate:
    id: int
    name: str
    uuid: str
    hosts: list[str]
    metadata: dict[str, str]

class AggregateManager:
    def list(self) -> list[Aggregate]: ...
    def create(
        self, name: str, availability_zone: str | None
    ) -> Aggregate: ...
    def set_metadata(
        self, aggregate: int, metadata: Mapping[str, str | None]
    ) -> Aggregate: ...
    def add_host(self, aggregate: int, host: str) -> Aggregate: ...
    def remove_host(self, aggregate: int, host: str) -> Aggregate: ...
    def delete(self, aggregate: int) -> object: ...
