"""The kinds of executors that this build has. A codec's module is imported when its adapter is declared, and only then."""

from collections.abc import Iterator, Mapping
from importlib import import_module

from sentinel.core.codec import Adapter

_MODULES = {"codex": "adapters.codex", "claude": "adapters.claude", "echo": "adapters.echo"}


class _Imported(Mapping[str, Adapter]):
    """Adapter word -> the `ADAPTER` of its module."""

    def __getitem__(self, word: str) -> Adapter:
        adapter: Adapter = import_module(_MODULES[word]).ADAPTER
        return adapter

    def __contains__(self, word: object) -> bool:
        return word in _MODULES

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


ADAPTERS: Mapping[str, Adapter] = _Imported()
