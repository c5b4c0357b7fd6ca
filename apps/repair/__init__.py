"""Repair of responses: with words of the knowledge (``Corrector``) or entities of a graph (``Critic``, ``Refiner``)."""

from __future__ import annotations

from .correction.pipeline import CorrectOptions, Corrector
from .kg import GraphProblem, KnowledgeGraph, Linked, Subgraph
from .nph.options import CritiqueOptions, RefineOptions
from .nph.pipeline import Critic, Refiner
from .records import Alternative, Change, Correction, CorrectionEdit, Critique, Edit, Refinement

__all__ = [
    "Alternative",
    "Change",
    "CorrectOptions",
    "Correction",
    "CorrectionEdit",
    "Corrector",
    "Critic",
    "Critique",
    "CritiqueOptions",
    "Edit",
    "GraphProblem",
    "KnowledgeGraph",
    "Linked",
    "RefineOptions",
    "Refinement",
    "Refiner",
    "Subgraph",
]
