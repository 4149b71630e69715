# SPDX-License-Identifier: Apache-2.0
"""Objects from fields that another version of this program may have written.

Managers and schedulers of two successive versions work side by side. A newer
version adds fields only with a default that means the older behaviour.
"""

from collections.abc import Mapping
import inspect
from typing import Any
from typing import TypeVar

T = TypeVar('T')


def build(cls: type[T], data: Mapping[str, Any]) -> T:
    """Return an object of a dataclass without the fields that it lacks.

    :raises TypeError: if a field without a default is missing
    """
    try:
        return cls(**data)
    except TypeError:
        names = inspect.signature(cls).parameters
        return cls(**{k: v for k, v in data.items() if k in names})
