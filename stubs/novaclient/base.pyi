# SPDX-License-Identifier: Apache-2.0
from collections.abc import Mapping

class Resource:
    id: str
    def __init__(
        self, manager: object, info: Mapping[str, object]
    ) -> None: ...
