# SPDX-License-Identifier: Apache-2.0
"""Reservations in time for nova-scheduler."""
