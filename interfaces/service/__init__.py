"""The HTTP service: ``app`` is an ASGI application over an engine, ``groundwire serve`` runs it.

``make_proxy`` is another one, before a server of OpenAI's chat protocol; ``groundwire proxy`` runs it.

>>> from groundwire import service
>>> from groundwire.engine import Engine
>>> application = service.app(Engine.load("compact"))                                          # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .application import app
    from .problems import Problem
    from .proxy import make_proxy
    from .settings import ProxySettings, Settings, load_settings

__all__ = ["Problem", "ProxySettings", "Settings", "app", "load_settings", "make_proxy"]

_MODULES = {
    "Problem": "problems",
    "ProxySettings": "settings",
    "Settings": "settings",
    "app": "application",
    "load_settings": "settings",
    "make_proxy": "proxy",
}


def __getattr__(name: str) -> Any:
    """Import what needs the extra ``serve`` with its first use: the command line imports this package for its help."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("starlette", "prometheus_client", "uvicorn", "httpx"):
            extra = "proxy" if error.name == "httpx" else "serve"
            raise ImportError(
                f"The service needs {error.name}; install it with: pip install 'groundwire[{extra}]'"
            ) from error
        raise
