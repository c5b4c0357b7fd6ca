"""What ``groundwire serve --check`` finds out without loading a model."""

from __future__ import annotations

from groundwire.engine import InvalidRequest
from groundwire.engine.core.plan import make_plan
from groundwire.runtime.local import describe

from .server import make_load_options
from .settings import Settings, read_tokens


def check_service(settings: Settings) -> str:
    """Say what a server with these settings would serve, in one sentence.

    Files of bundles are read, and compared with their digests; ports are not opened.

    Raises:
        InvalidRequest: A setting, a token, a metric or the calibration is not usable.
        BundleError: A bundle is missing or damaged.
        DeviceError: The device cannot be used.
    """
    tokens = len(read_tokens(settings))
    roles, identity, calibration = describe(settings.bundle, settings.device, settings.extra)
    calibration = make_load_options(settings).loaded_calibration or calibration
    try:
        metrics = ", ".join(make_plan(roles, identity, calibration, settings.metrics or None).names)
    except InvalidRequest:
        if settings.metrics:
            raise
        metrics = "none"  # a bundle that repairs or generates, and scores nothing
    return (
        f"The settings are usable: bundle {identity.bundle} {identity.digest} on {identity.device}, metrics {metrics}, "
        f"{settings.workers} worker{'s' * (settings.workers > 1)}, "
        f"{tokens or 'no'} token{'s' * (tokens != 1)}."
    )
