# SPDX-License-Identifier: Apache-2.0
from typing import Any

class FakeExchangeManager:
    _exchanges: dict[str, Any]
    def __init__(self, default_exchange: str) -> None: ...
