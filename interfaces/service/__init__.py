"""The HTTP service: ``app`` is an ASGI application over an engine, ``groundwire serve`` runs it.

>>> from groundwire import service
>>> from groundwire.engine import Engine
>>> application = service.app(Engine.load("compact"))                                          # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .application import app
    from .problems import Problem
    from .settings import Settings, load_settings

__all__ = ["Problem", "Settings", "app", "load_settings"]

_MODULES = {"Problem": "problems", "Settings": "settings", "app": "application", "load_settings": "settings"}


def __getattr__(name: str) -> Any:
    """Import what needs the extra ``serve`` with its first use: the command line imports this package for its help."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("starlette", "prometheus_client", "uvicorn"):
            raise ImportError(
                f"The service needs {error.name}; install it with: pip install 'groundwire[serve]'"
            ) from error
        raise
