"""Symbol indexes of debug files, and symbolicated crash reports.

symdex turns a debug file (a dSYM, an ELF file) into a small symbol index, once. The index then answers crash addresses
in microseconds: function, file and line, with every inlined function.

* :func:`build` makes indexes of debug files.
* :class:`Index` answers addresses: :meth:`Index.lookup`, :meth:`Index.lookup_many`, :meth:`Index.lookup_columns`.
* :class:`Symbolicator` adds functions, files and lines to crash reports and to tables of addresses.
* :class:`Store` keeps indexes in a folder, an object store or Redis.
* :class:`Error` and its subclasses say what went wrong.
"""

from symdex._symdex import (
    BuildResult,
    BuiltImage,
    Columns,
    DamagedError,
    Error,
    Frame,
    Index,
    Metadata,
    MissingError,
    SourceWarning,
    Store,
    StoreEntry,
    Symbolicator,
    UnavailableError,
    UnsupportedError,
    __version__,
    build,
    demangle,
)

__all__ = [
    "BuildResult",
    "BuiltImage",
    "Columns",
    "DamagedError",
    "Error",
    "Frame",
    "Index",
    "Metadata",
    "MissingError",
    "SourceWarning",
    "Store",
    "StoreEntry",
    "Symbolicator",
    "UnavailableError",
    "UnsupportedError",
    "__version__",
    "build",
    "demangle",
]
