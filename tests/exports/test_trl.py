"""SFT and preference data in TRL: its own checks, and a step of its own trainers on the base model."""

from pathlib import Path
from typing import Any

import pytest
from conftest import BASE
from datasets import Dataset, load_dataset
from transformers import AutoTokenizer
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer
from trl.data_utils import apply_chat_template, is_conversational, maybe_extract_prompt

ENDINGS = {"jsonl": "json", "parquet": "parquet"}
# One step, and nothing written or reported.
STEP = dict(max_steps=1, per_device_train_batch_size=4, logging_steps=1, use_cpu=True, bf16=False)
STEP |= dict(save_strategy="no", report_to="none", disable_tqdm=True)


def read(file: Path, place: Path) -> Dataset:
    kind = ENDINGS[file.suffix.lstrip(".")]
    return load_dataset(kind, data_files=str(file), split="train", cache_dir=str(place))


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(BASE)


@pytest.mark.parametrize("ending", ENDINGS)
def test_sft(exported: Path, tmp_path: Path, tokenizer: Any, ending: str) -> None:
    data = read(exported / f"sft.{ending}", tmp_path / "cache")
    assert data.column_names == ["messages"]
    assert all(is_conversational(row) for row in data)
    assert all(row["messages"][-1]["role"] == "assistant" for row in data)
    text = apply_chat_template(data[0], tokenizer)["text"]
    assert data[0]["messages"][-1]["content"] in text
    settings = SFTConfig(output_dir=str(tmp_path / "out"), max_length=512, **STEP)
    trainer = SFTTrainer(str(BASE), args=settings, train_dataset=data, processing_class=tokenizer)
    assert 0 < trainer.train().training_loss < 20
    assert len(trainer.train_dataset) == len(data)


@pytest.mark.parametrize("ending", ENDINGS)
def test_preferences(exported: Path, tmp_path: Path, tokenizer: Any, ending: str) -> None:
    data = read(exported / f"preferences.{ending}", tmp_path / "cache")
    assert data.column_names == ["prompt", "chosen", "rejected"]
    for row in data:
        assert is_conversational(row)
        assert maybe_extract_prompt(row) == row, "the prompt stands by itself"
        assert row["chosen"] != row["rejected"]
    texts = apply_chat_template(data[0], tokenizer)
    assert texts["prompt"] + texts["chosen"] != texts["prompt"] + texts["rejected"]
    settings = DPOConfig(output_dir=str(tmp_path / "out"), max_length=512, **STEP)
    trainer = DPOTrainer(str(BASE), args=settings, train_dataset=data, processing_class=tokenizer)
    # Of two models that are still the same, every preference is a coin's toss.
    assert trainer.train().training_loss == pytest.approx(0.6931, abs=1e-3)
    assert len(trainer.train_dataset) == len(data)
