# SPDX-License-Identifier: Apache-2.0
"""The rules of reservations, with no I/O.

One noun a file. Nothing here reads a clock, a database or a service: `now`
is an argument, in whole seconds since 1970 UTC.
"""
