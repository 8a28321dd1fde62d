"""The folder that engines load contains the tiny model's own tokens, and weights at the positions that the header
gives."""

import json
import struct
from pathlib import Path

import pytest

pytest.importorskip("tokenizers", reason="the engine extra is not installed", exc_type=ModuleNotFoundError)

from tokenizers import Tokenizer

from tests.support.scoring_client import TOKENIZER
from tests.support.scoring_model import write_model, write_tokenizer
from tests.support.tiny_model import TOKENS

pytestmark = pytest.mark.engine


def test_the_committed_tokenizer_is_the_tiny_models(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    written, committed = (Tokenizer.from_file(str(folder / "tokenizer.json")) for folder in (tmp_path, TOKENIZER))
    assert written.get_vocab() == committed.get_vocab()
    assert len(written.get_vocab()) == TOKENS
    text = "Straße in 東京: the lazy dog 🙂."
    assert written.decode(committed.encode(text).ids) == text


def test_the_weights_fill_the_file_and_are_the_same_every_time(tmp_path: Path) -> None:
    write_model(tmp_path)
    first = (tmp_path / "model.safetensors").read_bytes()
    write_model(tmp_path)
    assert (tmp_path / "model.safetensors").read_bytes() == first
    (size,) = struct.unpack_from("<Q", first)
    tensors = json.loads(first[8 : 8 + size])
    assert max(tensor["data_offsets"][1] for tensor in tensors.values()) == len(first) - 8 - size
    assert tensors["lm_head.weight"]["shape"][0] == json.loads((tmp_path / "config.json").read_text())["vocab_size"]
