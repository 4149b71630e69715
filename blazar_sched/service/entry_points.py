# SPDX-License-Identifier: Apache-2.0
"""Loading of entry points, such as drivers and filters."""


def refuse(manager: object, entry_point: object, error: BaseException) -> None:
    """Raise the error of an entry point, which stevedore would ignore."""
    raise error
