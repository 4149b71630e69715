# SPDX-License-Identifier: Apache-2.0
"""Reservations of floating IPs."""
