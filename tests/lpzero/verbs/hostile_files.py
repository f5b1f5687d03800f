"""Files as an attacker would send them: each stored place that can name something names code.

A run's directory is an honest one in which every text under one key is replaced, and sealed again:
a seal is no secret.
"""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

import spaces
from lpzero.supernet import weights
from tests.lpzero.sealed_runs import content, rewrite

# Texts under these keys name a space, a file, a run or code; the rest are numbers, ids and prose.
KEYS = ("space", "address", "name", "proxy", "evaluator", "table", "path", "plugins", "asked",
        "loop", "kind", "verb", "definition", "dataset", "target")  # fmt: skip
_EVIL = """
from dataclasses import replace
import spaces
SPACE = replace(spaces.NANO_GPT2, name={name!r})
"""


class Attacker:
    """Writes hostile files below a folder; each names a Python file of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.n_files = 0
        folder.mkdir()

    def path(self, name: str) -> Path:
        """A new path in a new folder."""
        self.n_files += 1
        folder = self.folder / f"{self.n_files:03}"
        folder.mkdir()
        return folder / name

    def code(self, is_module: bool = False) -> str:
        """The address of a space in a new file; as a module, it lies in the working folder."""
        path = self.path("evil.py")
        if is_module:
            path = Path.cwd() / f"evil_{self.n_files}.py"
        path.write_text(_EVIL.format(name=f"evil-{self.n_files}"))
        return f"{path.stem if is_module else path}:SPACE"

    def runs(self, honest: Path, name: str, field: str = "") -> Iterator[Path]:
        """Copies of an honest run, one for each key under which a field of the file names code.

        Without a field the whole file is changed.
        """
        if (honest / name).exists():
            whole = content(honest, name)
            before = whole[field] if field else whole
            for key in KEYS:
                changed, n_changed = _replaced(before, key, "")
                if n_changed:
                    changed, _ = _replaced(before, key, self._value(key))
                if field == "command" and key == "plugins":
                    options = {**before["options"], "plugins": [self.code().rpartition(":")[0]]}
                    changed, n_changed = {**before, "options": options}, 1
                if n_changed:
                    folder = self.path(f"{honest.name}-{field or name.partition('.')[0]}-{key}")
                    shutil.copytree(honest, folder, symlinks=True)
                    rewrite(folder, name, {**whole, field: changed} if field else changed)
                    yield folder

    def _value(self, key: str) -> str:
        """What is put under the key: something that leads to code, by way of a file if need be."""
        if key in ("table", "path"):
            return str(self.trained_table())
        return self.code(is_module=key in ("address", "asked"))

    def trained_table(self) -> Path:
        """A table as `lpzero train` writes it, whose space is code."""
        path = self.path("table.json")
        shipped = Path(spaces.__file__).parent / "data" / "nano-rnn.json"
        document = json.loads(shipped.read_text())
        path.write_text(json.dumps({**document, "space": self.code()}))
        return path

    def rows(self) -> Path:
        """A CSV file whose cells are code."""
        path = self.path("rows.csv")
        cell = self.code()
        path.write_text(f"id,arch,space,accuracy\n{cell},{cell},{cell},1\n{cell},=1+1,{cell},2\n")
        return path

    def export(self, honest: str) -> Path:
        """An exported formula in which every text under a key is code."""
        path = self.path("formula.json")
        document = json.loads(honest)
        for key in ("space", "name", "table", "source"):
            document = _replaced(document, key, self.code())[0]
        path.write_text(json.dumps(document))
        return path

    def pickled(self, name: str) -> Path:
        """A torch file whose pickle calls a function."""
        path = self.path(name)
        torch.save({"model": _Runs(f"open({str(path.parent / 'ran')!r}, 'w')")}, path)
        return path

    def safetensors(self) -> Path:
        """Weights whose header names code as the space."""
        path = self.path("weights.safetensors")
        space: Any = spaces.get("nano-autoformer")
        about = {"space": self.code(), "arch": "{}"}
        weights.write(path, space.supernet(5).largest.state_dict(), about)
        return path

    def hf_folder(self) -> Path:
        """A folder of Hugging Face whose configuration names code in it."""
        folder = self.path("model")
        folder.mkdir()
        (folder / "modeling_evil.py").write_text("class Evil: pass\n")
        mapped = {"AutoConfig": "modeling_evil.Evil", "AutoModel": "modeling_evil.Evil"}
        fields = {"model_type": "evil", "auto_map": mapped, "architectures": ["Evil"]}
        (folder / "config.json").write_text(json.dumps(fields))
        (folder / "pytorch_model.bin").write_bytes(self.pickled("model.bin").read_bytes())
        return folder

    def hf_space(self) -> Path:
        """A space of Hugging Face configurations that names code."""
        path = self.path("space.yaml")
        path.write_text(
            "model_type: gpt2\nfields: {auto_map: {AutoModel: modeling_evil.Evil}}\n"
            "search: {n_layer: [1, 2]}\nbatch: [2, 8]\n"
        )
        return path

    def object_yaml(self, name: str = "space.yaml") -> Path:
        """YAML that asks for a Python object."""
        path = self.path(name)
        path.write_text(f"a: !!python/object/apply:os.mkdir [{path.parent / 'ran'}]\n")
        return path

    def text(self, name: str) -> Path:
        """JSON that is none of the engine's, with an address."""
        path = self.path(name)
        path.write_text(json.dumps({"space": self.code(), "type": self.code()}))
        return path

    def data_root(self) -> Path:
        """A data root whose table is a pickle that calls a function, and YAML that asks for one."""
        root = self.path("data")
        (root / "vit").mkdir(parents=True)
        shutil.copy(self.pickled("gt.pth"), root / "vit" / "gt_pit.pth")
        folder = root / "lts" / "random_GPT2_wt103"
        folder.mkdir(parents=True)
        shutil.copy(self.object_yaml(), folder / "ppl_summary.yaml")
        return root

    def cache(self) -> Path:
        """A cache with records of networks of a space that is code."""
        root = self.path("cache")
        folder = root / "nano-gpt2" / "ab"
        folder.mkdir(parents=True)
        record = {"schema": 1, "space": {"name": self.code()}, "reason": "x"}
        for ending in (".failed", ".failure.json", ".json", ".sketch"):
            (folder / ("ab" * 32 + ending)).write_text(json.dumps(record))
        (folder / ("ab" * 32 + ".branches")).write_bytes(pickle.dumps(_Runs("1")))
        return root


class _Runs:
    """An object whose pickle evaluates a text when it is loaded."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return eval, (self.text,)


def _replaced(value: Any, key: str, text: str, is_under: bool = False) -> tuple[Any, int]:
    """The value with the text in place of every text under the key, and of how many."""
    if isinstance(value, dict):
        pairs = {k: _replaced(v, key, text, k == key) for k, v in value.items()}
        return {k: v for k, (v, _) in pairs.items()}, sum(n for _, n in pairs.values())
    if isinstance(value, list):
        entries = [_replaced(v, key, text, is_under) for v in value]
        return [v for v, _ in entries], sum(n for _, n in entries)
    if is_under and (isinstance(value, str) or (value is None and key in ("space", "table"))):
        return text, 1
    return value, 0
