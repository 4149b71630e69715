# SPDX-License-Identifier: Apache-2.0
"""What is found by entry points, such as drivers and filters."""


def refuse(
    manager: object, entry_point: object, error: BaseException
) -> None:
    """Stop at what cannot be loaded: stevedore would go on without it."""
    raise error
