"""The trust boundary: the user's own Python code, and nobody else's, is run here.

A module is named as Python names it, `my_module` or `package.module`, or by its path,
`folder/my_module.py`. Names are looked for in the working folder first, then where Python looks. A
space in such a file has an address, `my_module:SPACE` or `folder/my_module.py:SPACE`.

`load` runs a module. It is called with what the user names: options and arguments of the command
line (`lpzero.options`), `--plugin`, the functions of Python, and `lpzero.yaml` in the working
folder. `find` runs nothing: it finds an address among the modules that are loaded, or refuses it.
Every address that is read from a file (a run's directory, a table, weights) goes through `find`, by
way of `spaces.get`. What is loaded is remembered, so that workers can run it too.
"""

from __future__ import annotations

import hashlib
import linecache
import shlex
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from spaces.base import Space
from spaces.errors import SpaceError, UnknownNameError, shown
from spaces.untrusted import read_regular, user_path

_LARGEST = 8 << 20  # bytes
_LONGEST = 200  # characters of an address that is printed as an option


class UserCodeError(SpaceError, ValueError):
    """A user's module that cannot be found, or that fails when it is run."""


class NotGivenError(UserCodeError):
    """An address that names code which the user did not name in this process."""

    def __init__(self, address: str) -> None:
        module = address.rpartition(":")[0]
        option, said = f"--plugin {shlex.quote(module)}", address
        if len(address) > _LONGEST or not address.isprintable():
            option, said = "--plugin FILE.py", shown(address)
        super().__init__(
            f"{said} names Python code, which is run only if you name it: if it is yours, give"
            f" {option}, or name it as the space of a table in lpzero.yaml (in Python: spaces.load)"
        )


@dataclass(frozen=True, slots=True)
class UserModule:
    """A file that was run: its module's name, its path, its text and the digest of that."""

    name: str
    path: str
    text: bytes

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text).hexdigest()


_LOADED: dict[str, UserModule] = {}
_IMPORTED: dict[str, None] = {}  # names of modules that the user named, which Python finds
_FORGET: list[Callable[[str], None]] = []
_RUNNING: list[str] = []
_SPACES: dict[str, tuple[str, Space[Any]]] = {}  # by a space's own name: its address and itself


def on_forget(callback: Callable[[str], None]) -> None:
    """Call the function with a module's name when what the module declared no longer holds.

    That is when it fails while it runs, and when its text has changed.
    """
    _FORGET.append(callback)


def loaded() -> tuple[UserModule, ...]:
    """The user's modules of this process, in the order in which they were run."""
    return tuple(_LOADED.values())


def imported() -> tuple[str, ...]:
    """The names of the modules that the user named and that Python imports."""
    return tuple(_IMPORTED)


def running() -> str | None:
    """The user's module that is being run now, if any."""
    return _RUNNING[-1] if _RUNNING else None


def digest_of(module: str) -> str | None:
    """The digest of a user's module by its name; None if it is not one of these."""
    return _LOADED[module].digest if module in _LOADED else None


def load(name: str) -> ModuleType:
    """The module of that name or path, run if it was not yet: for what the user names."""
    if _is_path(name):
        return _run_file(user_path(name))
    beside = Path(*name.split(".")).with_suffix(".py")
    if name in _LOADED and name in sys.modules:
        return sys.modules[name]
    if "." not in name and beside.is_file():
        return _run_file(beside, name)
    _see(Path.cwd())
    try:
        module = import_module(name)
    except (Exception, SystemExit) as error:  # whatever the user's code does
        raise UserCodeError(f"module {name} cannot be imported: {_reason(error)}") from error
    _IMPORTED[name] = None
    return module


def load_address(address: str) -> None:
    """Run the module of an address that the user names, if it was not run yet."""
    load(_parts(address)[0])


def accept(names: Iterable[str]) -> None:
    """Let the modules of these names be imported: for workers, whose driver imported them."""
    _IMPORTED.update(dict.fromkeys(names))


def restore(module: UserModule) -> ModuleType:
    """The module, run from its text where this process does not have it: for workers."""
    loaded = _LOADED.get(module.name)
    if loaded is not None and loaded.digest == module.digest:
        return sys.modules[module.name]
    if loaded is not None:
        _forget(module.name)
    return _run(module)


def _run_file(path: Path, name: str | None = None) -> ModuleType:
    where = path.absolute()
    for loaded in _LOADED.values():
        if loaded.path == str(where):
            return sys.modules[loaded.name]
    try:
        text = read_regular(where, _LARGEST)
    except FileNotFoundError:
        raise UserCodeError(f"there is no file {path}") from None
    except OSError as error:
        raise UserCodeError(f"{path} cannot be read: {error.strerror}") from None
    return _run(UserModule(name or _free_name(where), str(where), text))


def _run(user_module: UserModule) -> ModuleType:
    path = Path(user_module.path)
    _see(path.parent)
    spec = spec_from_file_location(user_module.name, user_module.path)
    assert spec is not None, "a .py file has a loader"
    module = module_from_spec(spec)
    sys.modules[user_module.name] = module
    _LOADED[user_module.name] = user_module
    _RUNNING.append(user_module.name)
    try:
        exec(_code(user_module), module.__dict__)  # noqa: S102 (the user's own code, as import runs it)
    except (Exception, SystemExit) as error:  # whatever the user's code does
        _forget(user_module.name)
        raise UserCodeError(f"{path.name} fails: {_reason(error)}") from error
    finally:
        _RUNNING.pop()
    return module


def _forget(name: str) -> None:
    del sys.modules[name], _LOADED[name]
    for callback in _FORGET:
        callback(name)


def _code(user_module: UserModule) -> CodeType:
    # The text is what was read, here or in another process: the file may differ by now.
    text = user_module.text.decode("utf-8", errors="replace")
    lines = text.splitlines(keepends=True)
    linecache.cache[user_module.path] = (len(text), None, lines, user_module.path)
    return compile(user_module.text, user_module.path, "exec")


def _free_name(path: Path) -> str:
    """The file's own name, unless Python means another module by it."""
    stem = path.stem
    if not stem.isidentifier():
        return f"user_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    try:
        spec = find_spec(stem)
    except (ImportError, ValueError):
        spec = None
    is_other = spec is not None and spec.origin != str(path)
    return f"user_{stem}" if is_other or stem in sys.modules else stem


def _see(folder: Path) -> None:
    """Let the user's code import what is beside it; after everything that is installed."""
    if folder.is_dir() and str(folder) not in sys.path:
        sys.path.append(str(folder))


def _reason(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def is_address(text: str) -> bool:
    """Whether the text is an address rather than a name."""
    return ":" in text


def _is_path(module: str) -> bool:
    return module.endswith(".py") or "/" in module


def _parts(address: str) -> tuple[str, str]:
    """The module and the name of an address."""
    module, _, attribute = address.rpartition(":")
    if not module or not attribute.isidentifier():
        raise UserCodeError(f"{shown(address)} is not an address; write my_module.py:NAME")
    return module, attribute


def find(address: str, kind: type[Any], what: str) -> Any:
    """The object at the address; raise NotGivenError unless the user named its module.

    No code is run that the user did not name.
    """
    module_name, attribute = _parts(address)
    module = _given(module_name)
    if module is None:
        _load_of_project(module_name)
        module = _given(module_name)
    if module is None:
        raise NotGivenError(address)
    attribute_value = vars(module).get(attribute)
    if attribute_value is None:
        offered = [name for name, value in vars(module).items() if isinstance(value, kind)]
        public = sorted(name for name in offered if not name.startswith("_"))
        raise UnknownNameError(f"{what} in {module_name}", attribute, public)
    if not isinstance(attribute_value, kind):
        raise UserCodeError(f"{address} is a {type(attribute_value).__name__}, expected a {what}")
    return attribute_value


def _given(name: str) -> ModuleType | None:
    """The module of that name or path, if it is loaded or the driver of this worker has it.

    A file is known by its path, else by its name: it may have been moved since the address was
    stored, and workers have another working folder than their driver.
    """
    if not _is_path(name):
        module = sys.modules.get(name)
        if module is None and name in _IMPORTED:
            return load(name)
        return module if isinstance(module, ModuleType) else None
    where = user_path(name)
    by_path = [loaded for loaded in _LOADED.values() if loaded.path == str(where.absolute())]
    by_name = [loaded for loaded in _LOADED.values() if Path(loaded.path).name == where.name]
    return sys.modules[(by_path or by_name)[-1].name] if by_name else None


def _load_of_project(module: str) -> None:
    """Run the module if `lpzero.yaml` in the working folder names it as that of a space."""
    from spaces.tables.project_file import project_sources

    addresses = {s.space for s in project_sources().values() if is_address(s.space)}
    for name in sorted({_parts(address)[0] for address in addresses}):
        if _stem(name) == _stem(module):
            load(name)


def _stem(module: str) -> str:
    return Path(module).stem if _is_path(module) else module.rpartition(".")[2]


def find_space(address: str) -> Space[Any]:
    """The space at the address, in a module that the user named."""
    space: Space[Any] = find(address, Space, "space, as lpzero.space makes one")
    remember_space(address, space)
    return space


def remember_space(address: str, space: Space[Any]) -> None:
    """Know the space by its own name from now on, too."""
    earlier = _SPACES.get(space.name)
    # One that was given as an object has its own name as its address.
    if earlier is not None and earlier[1] != space and earlier[0] != space.name:
        raise UserCodeError(
            f"{earlier[0]} and {address} are different spaces, both called {space.name}: give one"
            " of them another name="
        )
    _SPACES[space.name] = address, space


def named_space(name: str) -> Space[Any] | None:
    """A space that was found before, by its own name."""
    return _SPACES[name][1] if name in _SPACES else None


def given_spaces() -> list[Space[Any]]:
    """The spaces that were given as objects, whose address is their name: workers need them."""
    return [space for name, (address, space) in _SPACES.items() if address == name]


def address_of(space: Space[Any]) -> str:
    """What `spaces.get` takes to find the space in another process: its address or its name."""
    remembered = _SPACES.get(space.name)
    return space.name if remembered is None else remembered[0]
