"""LoRA training of any Hugging Face causal language model behind the Tinker operations."""

__version__ = "0.1.0"
