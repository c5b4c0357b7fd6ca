"""Recipes of the models in ``bundles/compact``, one per role."""

from ..common import extra as _extra  # noqa: F401 - says what to install
