# SPDX-License-Identifier: Apache-2.0
"""The objects with the loops of a part, in a manager that runs the part."""


def of(manager, kind):
    """Return the object of a class whose loops the manager runs."""
    return next(each for each in manager._threads if isinstance(each, kind))
