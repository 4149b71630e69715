# SPDX-License-Identifier: Apache-2.0
"""A Nova flavor, as far as a reservation of its instances needs it."""

from collections.abc import Mapping
import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Flavor:
    """`projects` are those that may use a private one, None if it is public.

    The ledger keeps a copy of Nova's flavors: a lease is placed without a
    call to Nova.
    """

    id: str
    name: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    ephemeral_gb: int = 0
    swap_mb: int = 0
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    projects: tuple[str, ...] | None = None

    def is_open_to(self, project_id: str) -> bool:
        return self.projects is None or project_id in self.projects
