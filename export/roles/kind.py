"""What the exporter knows about a kind of model; each module of a kind ends with such a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypedDict

import msgspec
import onnx_ir as ir
import torch

from groundwire.runtime.bundles.manifest import Aggregation, Parity, Precision, Role, Template

from ..checkpoint import Checkpoint
from ..options import RoleOptions
from ..store import RoleFiles
from ..trace import quiet
from ..verify.outcome import ReferenceOutputs


class CommonFields(TypedDict):
    """The fields of a role's record that every exported model has."""

    source: str
    revision: str | None
    architecture: str
    precision: Precision
    tokenizer: str
    max_tokens: int
    pad_id: int
    parity: Parity


def set_aggregation(aggregation: Aggregation) -> Aggregation | msgspec.UnsetType:
    """Return the field of a role's record, which is left out where the least value counts."""
    return msgspec.UNSET if aggregation == "min" else aggregation


def _keep_files(files: RoleFiles) -> RoleFiles:
    return files


@dataclass(frozen=True)
class Conversion:
    """A checkpoint as float32 graphs, and what its role's record will say.

    The pipeline calls ``build_fused_step`` before the precision is reduced, ``make_record`` after that, and ``finish``
    last.
    """

    graphs: Mapping[str, ir.Model]
    """By file name, in the order in which ``ReferenceOutputs.compare`` takes them."""
    template: Template
    """How the fixed texts of the parity check become model inputs."""
    make_record: Callable[[CommonFields], Role]
    """Makes the role's record of the common fields, once precision and parity are known."""
    finish: Callable[[RoleFiles], RoleFiles] = _keep_files
    """Applies the passes that come after the parity check, to graphs that it has passed."""
    build_fused_step: Callable[[], ir.Model] | None = None
    """Builds the float32 decoder step for CUDA, in place of the last graph; None where all graphs are adapted.
    ExportError when CUDA cannot run it."""


@dataclass(frozen=True)
class Kind:
    """A kind of model; ``export/roles/names.py`` has the roles that it may fill."""

    name: str


@dataclass(frozen=True)
class ExportKind(Kind):
    """A kind whose checkpoints become ONNX graphs that are compared with the checkpoint."""

    load: Callable[[RoleOptions], Checkpoint]
    """Loads a checkpoint; ExportError when it is missing or of another kind."""
    convert: Callable[[str, Checkpoint, RoleOptions], Conversion]
    """Converts the checkpoint of a role; ExportError when the options or the labels do not fit it."""
    build_reference: Callable[[Checkpoint, Template], ReferenceOutputs]
    """Runs the checkpoint on the fixed texts, in inference mode."""

    def reference(self, checkpoint: Checkpoint, template: Template) -> ReferenceOutputs:
        """Run the checkpoint on the fixed texts, filled into ``template`` by the kinds that use one."""
        with torch.inference_mode(), quiet():
            return self.build_reference(checkpoint, template)


@dataclass(frozen=True)
class CopiedKind(Kind):
    """A kind that is copied into the bundle without being run."""

    copy: Callable[[str, RoleOptions], RoleFiles]
    """Describes the files of a role; ExportError when the source is missing."""
