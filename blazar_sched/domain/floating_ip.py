# SPDX-License-Identifier: Apache-2.0
"""A floating IP that the operator has registered as reservable."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class FloatingIP:
    """An address of an external network, outside its allocation pools."""

    id: str
    network_id: str
    subnet_id: str
    address: str
    reservable: bool = True
    created_at: int | None = None
    updated_at: int | None = None
