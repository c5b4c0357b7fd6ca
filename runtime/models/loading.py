"""Loads the models of a bundle's roles; roles of one graph share its session and its passes."""

from __future__ import annotations

from collections.abc import Mapping

from ..bundles.bundle import Bundle
from ..bundles.manifest import ClassifierRole, JudgeRole, Role, TokenClassifierRole
from ..errors import BundleError, GroundwireError, describe_shortage
from ..ort.session import DeviceProfile, Graph
from .classifier import Classifier, TokenClassifier
from .graphs import GraphHead, SharedGraph, load_graph
from .kinds import Model, kind_of


def group_roles(roles: Mapping[str, tuple[Role, Bundle]]) -> list[tuple[str, ...]]:
    """The roles that load together: roles that name one graph do, and every other role loads by itself."""
    groups: dict[object, list[str]] = {}
    for name, (role, bundle) in roles.items():
        shares = isinstance(role, ClassifierRole | TokenClassifierRole) and not isinstance(role, JudgeRole)
        groups.setdefault((bundle.directory, role.graph_files) if shares else name, []).append(name)
    return [tuple(group) for group in groups.values()]


def load_group(names: tuple[str, ...], roles: Mapping[str, tuple[Role, Bundle]], profile: DeviceProfile) -> Model:
    """The model of one role, or of all roles of one graph; BundleError for files that do not fit each other."""
    role, bundle = roles[names[0]]
    profile = profile.share_threads(bundle.manifest.size)
    try:
        if len(names) == 1:
            return kind_of(role).load(bundle, role, profile)
        assert isinstance(role, ClassifierRole | TokenClassifierRole)
        session = load_graph(bundle, role, profile)
        return SharedGraph(session, {name: _load_head(*roles[name], profile, session) for name in names}, profile)
    except GroundwireError:
        raise
    except Exception as error:  # whatever a library makes of files that fit their digests and not each other
        shortage = describe_shortage(error)
        advice = f"{shortage}. Give the process more memory." if shortage else f"{error}. Export it again."
        raise BundleError(f"The role {names[0]!r} of {bundle.directory} cannot be loaded: {advice}") from error


def _load_head(role: Role, bundle: Bundle, profile: DeviceProfile, session: Graph) -> GraphHead:
    if isinstance(role, TokenClassifierRole):
        return TokenClassifier.load(bundle, role, profile, session)
    assert isinstance(role, ClassifierRole)
    return Classifier.load(bundle, role, profile, session)
