"""The base model: loaded once, frozen, shared by every adapter; over several ranks, sharded by layer."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import torch
from accelerate import PartialState
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

log = logging.getLogger(__name__)

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class Unsuitable(Exception):
    """The model cannot be trained here; says why and what to do."""


@dataclass(frozen=True)
class BaseSettings:
    """How the base is loaded."""

    model: str
    dtype: str
    checkpointing: bool
    attention: str | None = None


class Base:
    """A frozen causal language model."""

    def __init__(self, settings: BaseSettings, state: PartialState) -> None:
        config = AutoConfig.from_pretrained(settings.model)
        more = {"attn_implementation": settings.attention} if settings.attention else {}
        model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
            settings.model, config=config, dtype=DTYPES[settings.dtype], **more
        )
        model.requires_grad_(False)
        model.config.use_cache = False
        if settings.checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.train()  # Checkpointing is active in training mode only.
        for module in model.modules():
            if isinstance(module, nn.Dropout) and module.p > 0:
                log.warning("dropout of %s is switched off, so that a repeated step is the same", settings.model)
                module.p = 0.0
        self.model = model
        # Once: adapters will wrap them.
        self._linears = _linears(model)
        self.state = state
        self.autocast = settings.dtype == "bfloat16"
        self.device: torch.device = state.device
        self.vocab_size: int = model.get_input_embeddings().weight.shape[0]
        text = config.get_text_config()
        self.hidden_size: int = text.hidden_size
        self.longest: int = text.max_position_embeddings
        if state.num_processes > 1:
            self._shard(state)
        model.to(self.device)
        self._check_head()

    @property
    def backbone(self) -> nn.Module:
        """The model without its output layer."""
        return getattr(self.model, self.model.base_model_prefix)

    def _shard(self, state: PartialState) -> None:
        """FSDP2 over the decoder layers. Embedding and output layer stay whole on every rank (they may be
        one tensor), and adapters, which come later, are whole too: only their gradients travel."""
        mesh = init_device_mesh(state.device.type, (state.num_processes,))
        layers = getattr(self.backbone, "layers", None) or getattr(self.backbone, "h", None)
        if layers is None:
            raise Unsuitable(f"{type(self.backbone).__name__} has no list of layers to shard; use one rank")
        for layer in layers:
            fully_shard(layer, mesh=mesh, reshard_after_forward=True)
        inside = {id(p) for layer in layers for p in layer.parameters()}
        whole = {p for p in self.backbone.parameters() if id(p) not in inside}
        fully_shard(self.backbone, mesh=mesh, ignored_params=whole)

    def hidden(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Last hidden states, `[batch, length, hidden_size]`."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast):
            return self.backbone(input_ids=tokens, attention_mask=mask, use_cache=False).last_hidden_state

    def packed_hidden(
        self, tokens: torch.Tensor, visible: torch.Tensor, positions: torch.Tensor
    ) -> torch.Tensor:
        """Last hidden states where each token sees what it is told to, `[batch, length, hidden_size]`.

        Raises:
            Unsuitable: the attention takes no mask of this kind.
        """
        text = self.model.config.get_text_config()
        attention = text._attn_implementation
        kinds = set(getattr(text, "layer_types", None) or ["full_attention"])
        if attention not in ("sdpa", "eager") or kinds != {"full_attention"}:
            raise Unsuitable(
                f"scored losses need attention sdpa or eager and full attention in every layer; this is {attention} "
                f"with {', '.join(sorted(kinds))}"
            )
        mask = visible
        if attention == "eager":
            dtype = torch.bfloat16 if self.autocast else torch.float32
            mask = torch.zeros(visible.shape, dtype=dtype, device=visible.device)
            mask = mask.masked_fill(~visible, torch.finfo(dtype).min)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast):
            return self.backbone(
                input_ids=tokens, attention_mask=mask, position_ids=positions, use_cache=False
            ).last_hidden_state

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits of hidden states, float32."""
        return self.model.get_output_embeddings()(hidden.to(self.model.dtype)).float()

    @torch.no_grad()
    def _check_head(self) -> None:
        """Some architectures scale or cap their logits after the output layer. Training reads hidden states
        to save memory, so a model that does more than multiply is refused, by measuring it."""
        tokens = torch.arange(8, device=self.device)[None] % self.vocab_size
        mask = torch.ones_like(tokens, dtype=torch.bool)
        ours = self.logits(self.hidden(tokens, mask))
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast):
            theirs = self.model(input_ids=tokens, attention_mask=mask, use_cache=False).logits.float()
        tolerance = 5e-2 if self.autocast else 1e-4
        if not torch.allclose(ours, theirs, rtol=tolerance, atol=tolerance):
            raise Unsuitable(
                f"{type(self.model).__name__} does more to its logits than its output layer; "
                "this trainer would compute another loss"
            )

    def linear_names(self, attention: bool, mlp: bool) -> list[str]:
        """Names of the linear maps to be adapted: all but the output layer, of the parts asked for."""
        names = {name for name, of_attention in self._linears if (attention if of_attention else mlp)}
        if not names:
            raise Unsuitable(f"{type(self.model).__name__} has no linear maps of the parts asked for")
        return sorted(names)


def _linears(model: PreTrainedModel) -> set[tuple[str, bool]]:
    """Names of the linear maps but the output layer, and whether they are part of attention."""
    head = model.get_output_embeddings()
    found = set()
    for path, module in model.named_modules():
        if isinstance(module, nn.Linear) and module is not head:
            parents, _, name = path.rpartition(".")
            found.add((name, "attn" in parents or "attention" in parents))
    return found
