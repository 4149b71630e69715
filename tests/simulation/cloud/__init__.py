# SPDX-License-Identifier: Apache-2.0
"""Nova and Placement as the clients see them, in the world's time.

A file has one subject: each is a base of `cloud.Cloud`.
"""
