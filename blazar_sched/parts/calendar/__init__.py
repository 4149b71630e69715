# SPDX-License-Identifier: Apache-2.0
"""Calendars: links at which programs read the leases of a project."""

# A calendar has the leases of so many seconds before and after the present.
PAST = 31 * 86400
FUTURE = 366 * 86400
