"""Builds every n-th type of model in transformers' mapping, and prints what the process did.

As a JSON object with what was built, refused and asked of the network, and which files outside the
installation were opened. For a process of its own: an audit hook cannot be removed.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
# The interpreter, its libraries, this repository, and what libraries ask of the machine.
ALLOWED = tuple(
    str(Path(place).resolve())
    for place in (
        sys.prefix,
        sys.base_prefix,
        ROOT,
        "/proc",
        "/sys",
        "/dev",
        "/usr",
        "/etc",
        "/lib",
    )
)
SAFE_SOCKET = ("socket.__new__", "socket.gethostname")
requests: list[str] = []
opened: set[str] = set()


def watch(event: str, args: tuple[Any, ...]) -> None:
    if event.startswith(("socket.", "urllib.", "http.")) and event not in SAFE_SOCKET:
        requests.append(f"{event} {args!r:.80}")
    if event == "open" and isinstance(args[0], (str, bytes)):
        path = os.path.realpath(os.fsdecode(args[0]))
        if not path.startswith(ALLOWED):
            opened.add(path)


def main(step: int) -> int:
    os.environ["LPZERO_MEMORY"] = "1000000GB"  # nothing is allocated here
    sys.addaudithook(watch)
    from lpzero.errors import InputError
    from lpzero.hf import models
    from lpzero.hf.configuration import checked_fields, make_configuration, transformers_offline
    from spaces.errors import MemoryLimitError
    from spaces.outlines import outline

    with transformers_offline("test"):
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
        from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES
    counts: Counter[str] = Counter()
    for model_type in sorted(CONFIG_MAPPING_NAMES)[::step]:
        counts["types"] += 1
        of_type = MODEL_MAPPING_NAMES.get(model_type)
        name = of_type[0] if isinstance(of_type, (list, tuple)) else of_type
        plain = {"model_type": model_type, **({"architectures": [name]} if name else {})}
        for other in ({}, {"backbone": "name/repo"}, {"_name_or_path": "name/repo"}):
            try:
                fields = checked_fields({**plain, **other}, model_type)
                with transformers_offline(model_type):
                    if other:
                        make_configuration(fields, model_type)
                    else:
                        outline(models._maker(fields, model_type), model_type)
                counts["configured" if other else "built"] += 1
            except (InputError, MemoryLimitError) as error:
                counts["further lines"] += len(str(error).splitlines()) - 1
                counts["backbone refused" if "backbone" in other else "refused"] += 1
    still_there = sorted(filter(os.path.exists, opened))  # not what tempfile tries
    print(json.dumps({**counts, "requests": requests, "opened": still_there}))
    return 0
